import { constants } from "node:os";
import {
  allowedCalls,
  type SeccompArchitecture,
  type SyscallName,
  syscallNumber,
} from "@ambit/attacks/system-calls";
import { auditArchitecture } from "./architecture.js";
import { ARCHITECTURE_OFFSET, argumentOffset, assemble, type BpfStatement, NUMBER_OFFSET } from "./bpf.js";
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

/** For a call that isn't in the list of allowed ones. */
const unlistedErrno = constants.errno.ENOSYS;

/**
 * Compiles the sandbox's filter for `bwrap --seccomp FD`, which reads a raw `struct sock_filter[]`.
 *
 * A call of another architecture (`int 0x80` on x86-64, 32-bit ARM on arm64) kills the process with SIGSYS: its
 * numbers mean other calls.
 */
export function compileSeccompFilter(architecture: SeccompArchitecture): Buffer {
  return assemble(filterStatements(architecture, seccompRules, allowedNumbers(architecture)));
}

/** Numbers of the calls that are allowed unless a rule tests them. */
export function allowedNumbers(architecture: SeccompArchitecture): readonly number[] {
  return allowedCalls.flatMap(({ numbers }) => numbers[architecture] ?? []);
}

/** The filter of these rules: what they don't refuse is allowed if they test it, or if it is listed. */
export function filterStatements(
  architecture: SeccompArchitecture,
  rules: readonly SeccompRule[],
  listed: readonly number[],
): readonly BpfStatement[] {
  const tested = rules.filter(({ when }) => when !== undefined).flatMap(({ calls }) => calls);
  const numbersOf = (calls: readonly SyscallName[]) =>
    calls.flatMap((call) => syscallNumber(call, architecture) ?? []);
  const numbersTested = numbersOf(tested);
  const allowed = listed.filter((number) => !numbersTested.includes(number));
  return [
    { do: "load", offset: ARCHITECTURE_OFFSET },
    { do: "if-equal", value: auditArchitecture[architecture], to: "native" },
    { do: "answer", value: seccompErrno.killProcess },
    { do: "label", name: "native" },
    { do: "load", offset: NUMBER_OFFSET },
    ...(architecture === "x64" ? refuseX32() : []),
    // First: almost every call is one of these.
    ...allowStatements(allowed),
    { do: "label", name: "not allowed in any case" },
    ...rules.flatMap((rule, index) => ruleStatements(rule, architecture, `rule ${index}`)),
    ...numbersTested.map((value): BpfStatement => ({ do: "if-equal", value, to: "spared" })),
    { do: "answer", value: seccompErrno.fail(unlistedErrno) },
    { do: "label", name: "spared" },
    { do: "answer", value: seccompErrno.allow },
  ];
}

/** Allows the numbers, as ranges in ascending order. */
function allowStatements(numbers: readonly number[]): BpfStatement[] {
  return rangesOf(numbers).flatMap(({ first, last }): BpfStatement[] => [
    { do: "if-at-least", value: last + 1, to: `above ${last}` },
    { do: "if-at-least", value: first, to: `from ${first}` },
    { do: "jump", to: "not allowed in any case" },
    { do: "label", name: `from ${first}` },
    { do: "answer", value: seccompErrno.allow },
    { do: "label", name: `above ${last}` },
  ]);
}

interface Range {
  readonly first: number;
  readonly last: number;
}

function rangesOf(numbers: readonly number[]): readonly Range[] {
  const ranges: Range[] = [];
  for (const number of [...new Set(numbers)].sort((one, other) => one - other)) {
    const open = ranges.at(-1);
    if (open?.last === number - 1) ranges.splice(-1, 1, { first: open.first, last: number });
    else ranges.push({ first: number, last: number });
  }
  return ranges;
}

function refuseX32(): BpfStatement[] {
  return [
    { do: "if-any-bit", value: x32Bit.number, to: "x32" },
    { do: "jump", to: "rules" },
    { do: "label", name: "x32" },
    { do: "answer", value: seccompErrno.fail(x32Bit.errno) },
    { do: "label", name: "rules" },
  ];
}

/** One rule as a block that is entered and left with the call's number loaded. */
function ruleStatements(rule: SeccompRule, architecture: SeccompArchitecture, name: string): BpfStatement[] {
  const numbers = rule.calls.flatMap((call) => syscallNumber(call, architecture) ?? []);
  if (numbers.length === 0) return [];
  const tests = rule.when ?? [];
  return [
    ...numbers.map((value): BpfStatement => ({ do: "if-equal", value, to: `${name}: matched` })),
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
function testStatements(test: ArgumentTest, name: string, otherwise: string): BpfStatement[] {
  const load: BpfStatement = { do: "load", offset: argumentOffset(test.argument) };
  const holds = `${name}: holds`;
  if ("isNoneOf" in test) {
    return [load, ...test.isNoneOf.map((value): BpfStatement => ({ do: "if-equal", value, to: otherwise }))];
  }
  const checks: BpfStatement[] =
    "anyBitOf" in test
      ? [{ do: "if-any-bit", value: test.anyBitOf, to: holds }]
      : test.isOneOf.map((value): BpfStatement => ({ do: "if-equal", value, to: holds }));
  return [load, ...checks, { do: "jump", to: otherwise }, { do: "label", name: holds }];
}

/** The `errno` that the compiled filter gives a call; undefined if it allows the call. */
export function errnoOf(call: SyscallName, given: readonly bigint[]): number | undefined {
  const holds = (test: ArgumentTest) => {
    const value = Number(BigInt.asUintN(32, given[test.argument] ?? 0n));
    if ("anyBitOf" in test) return (BigInt(value) & BigInt(test.anyBitOf)) !== 0n;
    return "isOneOf" in test ? test.isOneOf.includes(value) : !test.isNoneOf.includes(value);
  };
  const naming = seccompRules.filter(({ calls }) => calls.includes(call));
  const applying = naming.find(({ when = [] }) => when.every(holds));
  if (applying !== undefined) return applying.errno;
  const isKnown = naming.length > 0 || allowedCalls.some(({ name }) => name === call);
  return isKnown ? undefined : unlistedErrno;
}
