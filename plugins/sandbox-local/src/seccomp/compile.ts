import { constants } from "node:os";
import { auditArchitecture, type SeccompArchitecture } from "./architecture.js";
import { ARCHITECTURE_OFFSET, argumentOffset, assemble, NUMBER_OFFSET, type Statement } from "./bpf.js";
import { type ArgumentTest, type SeccompRule, seccompRules } from "./rules.js";
import { syscallNumber } from "./syscall-numbers.js";

/** SECCOMP_RET_* of linux/seccomp.h. */
export const seccompAnswer = {
  killProcess: 0x80000000,
  fail: (errno: number): number => 0x00050000 | errno,
  allow: 0x7fff0000,
} as const;

/** __X32_SYSCALL_BIT: the 32-bit pointer ABI of x86-64 has its own numbers, which no rule would match. */
const X32_BIT = 0x40000000;

/**
 * Compiles the sandbox's filter for `bwrap --seccomp FD`, which reads a raw `struct sock_filter[]`.
 *
 * A call of another architecture (`int 0x80` on x86-64, 32-bit ARM on arm64) kills the process with SIGSYS: its
 * numbers mean other calls. `rules` is for tests; the default is the whole table.
 */
export function compileSeccompFilter(
  architecture: SeccompArchitecture,
  rules: readonly SeccompRule[] = seccompRules,
): Buffer {
  return assemble([
    { do: "load", offset: ARCHITECTURE_OFFSET },
    { do: "if-equal", value: auditArchitecture[architecture], to: "native" },
    { do: "answer", value: seccompAnswer.killProcess },
    { do: "label", name: "native" },
    { do: "load", offset: NUMBER_OFFSET },
    ...(architecture === "x64" ? refuseX32() : []),
    ...rules.flatMap((rule, index) => ruleStatements(rule, architecture, `rule ${index}`)),
    { do: "answer", value: seccompAnswer.allow },
  ]);
}

function refuseX32(): Statement[] {
  return [
    { do: "if-any-bit", value: X32_BIT, to: "x32" },
    { do: "jump", to: "rules" },
    { do: "label", name: "x32" },
    { do: "answer", value: seccompAnswer.fail(constants.errno.ENOSYS) },
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
    { do: "answer", value: seccompAnswer.fail(rule.errno) },
    { do: "label", name: `${name}: spared` },
    ...(tests.length > 0 ? [{ do: "load", offset: NUMBER_OFFSET } as const] : []),
    { do: "label", name: `${name}: done` },
  ];
}

/** Falls through where the test holds, jumps to `otherwise` where it doesn't. */
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
