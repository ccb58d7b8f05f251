import { constants } from "node:os";
import { type SeccompArchitecture, type SyscallName, syscallNumber } from "@ambit/backend-kit/system-calls";
import { auditArchitecture } from "./architecture.js";
import { ARCHITECTURE_OFFSET, argumentOffset, assemble, NUMBER_OFFSET, type Statement } from "./bpf.js";
import { type ArgumentTest, type SeccompRule, seccompRules } from "./rules.js";

/** SECCOMP_RET_* of linux/seccomp.h. */
export const seccompErrno = {
  killProcess: 0x80000000,
  fail: (errno: number): number => 0x00050000 | errno,
  allow: 0x7fff0000,
} as const;

/**
 * __X32_SYSCALL_BIT: the 32-bit pointer ABI of x86-64 has separate numbers, which no rule would match. Refused with
 * another error than that of a kernel without it (ENOSYS), so that a probe can tell them apart.
 */
export const x32Bit = { number: 0x40000000, errno: constants.errno.EPERM } as const;

/**
 * Compiles the sandbox's filter for `bwrap --seccomp FD`, which reads a raw `struct sock_filter[]`.
 *
 * A call of another architecture (`int 0x80` on x86-64, 32-bit ARM on arm64) kills the process with SIGSYS: its
 * numbers mean other calls.
 *
 * @param rules default: the whole table. Other rules are for tests, as is `without`, the names of calls to let through.
 */
export function compileSeccompFilter(
  architecture: SeccompArchitecture,
  rules: readonly SeccompRule[] = seccompRules,
  without: readonly ("x32" | "foreign")[] = [],
): Buffer {
  return assemble([
    { do: "load", offset: ARCHITECTURE_OFFSET },
    { do: "if-equal", value: auditArchitecture[architecture], to: "native" },
    { do: "answer", value: without.includes("foreign") ? seccompErrno.allow : seccompErrno.killProcess },
    { do: "label", name: "native" },
    { do: "load", offset: NUMBER_OFFSET },
    ...(architecture === "x64" && !without.includes("x32") ? refuseX32() : []),
    ...rules.flatMap((rule, index) => ruleStatements(rule, architecture, `rule ${index}`)),
    { do: "answer", value: seccompErrno.allow },
  ]);
}

function refuseX32(): Statement[] {
  return [
    { do: "if-any-bit", value: x32Bit.number, to: "x32" },
    { do: "jump", to: "rules" },
    { do: "label", name: "x32" },
    { do: "answer", value: seccompErrno.fail(x32Bit.errno) },
    { do: "label", name: "rules" },
  ];
}

/** One rule as a block that is entered and left with the call's number loaded. */
function ruleStatements(rule: SeccompRule, architecture: SeccompArchitecture, name: string): Statement[] {
  const numbers = rule.calls.flatMap((call) => syscallNumber(call, architecture) ?? []);
  if (numbers.length === 0) return [];
  const tests = rule.when ?? [];
  return [
    ...numbers.map((value): Statement => ({ do: "if-equal", value, to: `${name}: matched` })),
    { do: "jump", to: `${name}: done` },
    { do: "label", name: `${name}: matched` },
    ...tests.flatMap((test, index) => testStatements(test, `${name}, test ${index}`, `${name}: spared`)),
    { do: "answer", value: seccompErrno.fail(rule.errno) },
    { do: "label", name: `${name}: spared` },
    ...(tests.length > 0 ? [{ do: "load", offset: NUMBER_OFFSET } as const] : []),
    { do: "label", name: `${name}: done` },
  ];
}

/** Continues if the test holds, jumps to `otherwise` if it doesn't. */
function testStatements(test: ArgumentTest, name: string, otherwise: string): Statement[] {
  const load: Statement = { do: "load", offset: argumentOffset(test.argument) };
  const holds = `${name}: holds`;
  if ("isNoneOf" in test) {
    return [load, ...test.isNoneOf.map((value): Statement => ({ do: "if-equal", value, to: otherwise }))];
  }
  const checks: Statement[] =
    "anyBitOf" in test
      ? [{ do: "if-any-bit", value: test.anyBitOf, to: holds }]
      : test.isOneOf.map((value): Statement => ({ do: "if-equal", value, to: holds }));
  return [load, ...checks, { do: "jump", to: otherwise }, { do: "label", name: holds }];
}

/** The `errno` that the compiled filter would give a call; undefined if no rule refuses it. */
export function errnoOf(
  call: SyscallName,
  given: readonly bigint[],
  rules: readonly SeccompRule[] = seccompRules,
): number | undefined {
  const holds = (test: ArgumentTest) => {
    const value = Number(BigInt.asUintN(32, given[test.argument] ?? 0n));
    if ("anyBitOf" in test) return (BigInt(value) & BigInt(test.anyBitOf)) !== 0n;
    return "isOneOf" in test ? test.isOneOf.includes(value) : !test.isNoneOf.includes(value);
  };
  return rules.find(({ calls, when = [] }) => calls.includes(call) && when.every(holds))?.errno;
}
