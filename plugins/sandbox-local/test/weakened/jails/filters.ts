import { type SeccompArchitecture, type SyscallName, syscallNumber } from "@ambit/attacks/system-calls";
import {
  allowedNumbers,
  assemble,
  type BpfStatement,
  filterStatements,
  type SeccompRule,
  seccompErrno,
  seccompRules,
} from "@ambit/backend-kit/system-call-filter";
import { checkHost } from "../../../dist/confined/jail-setup.js";

/** The system call filter without one of its refusals. */
export interface FilterPart {
  /** `ptrace`, or with the tested value of an argument: `clone 0x20000`. */
  readonly name: string;
  readonly filter: Buffer;
}

/**
 * The filters without each call, and without each value of each test. Pure.
 *
 * @throws SandboxFailed if no filter is known for this machine.
 */
export function filterParts(architecture: SeccompArchitecture = checkHost()): readonly FilterPart[] {
  const listed = allowedNumbers(architecture);
  const rules = seccompRules.flatMap((rule, index) =>
    withoutOne(rule, architecture).map(({ name, rest, alsoAllowed = [] }) => {
      const others = seccompRules.flatMap((other, at) => (at === index ? (rest ?? []) : other));
      const numbers = alsoAllowed.flatMap((call) => syscallNumber(call, architecture) ?? []);
      return { name, filter: assemble(filterStatements(architecture, others, [...listed, ...numbers])) };
    }),
  );
  const whole = filterStatements(architecture, seccompRules, listed);
  const passing = (name: string, answer: number) => ({
    name,
    filter: assemble(whole.with(answer, { do: "answer", value: seccompErrno.allow })),
  });
  return [
    ...rules,
    passing(unlisted, labelIn(whole, "spared") - 1),
    ...(architecture === "x64"
      ? [
          { name: "calls with 32-bit pointers", filter: assemble(withoutX32(whole)) },
          passing("calls of another architecture", labelIn(whole, "native") - 1),
        ]
      : []),
  ];
}

function withoutX32(whole: readonly BpfStatement[]): readonly BpfStatement[] {
  const begin = found(whole.findIndex((one) => one.do === "if-any-bit" && one.to === "x32"));
  return whole.toSpliced(begin, labelIn(whole, "rules") - begin + 1);
}

function labelIn(statements: readonly BpfStatement[], name: string): number {
  return found(statements.findIndex((one) => one.do === "label" && one.name === name));
}

/** @throws RangeError for what isn't there: the removal must follow the filter that it changes. */
function found(index: number): number {
  if (index < 0) throw new RangeError("the filter has no such statement");
  return index;
}

interface RuleWithout {
  readonly name: string;
  /** Undefined if nothing is left of the rule. */
  readonly rest: SeccompRule | undefined;
  /** The call, if it is removed. Without a rule it would be one that isn't listed. */
  readonly alsoAllowed?: readonly SyscallName[];
}

const unlisted = "calls that aren't listed";

function withoutOne(rule: SeccompRule, architecture: SeccompArchitecture): readonly RuleWithout[] {
  const here = rule.calls.filter((call) => syscallNumber(call, architecture) !== undefined);
  const calls = here.map((call): RuleWithout => {
    const others = rule.calls.filter((one) => one !== call);
    const rest = others.length === 0 ? undefined : { ...rule, calls: others };
    return { name: call, rest, alsoAllowed: [call] };
  });
  const values =
    here.length === 0
      ? []
      : (rule.when ?? []).flatMap((test, at) => {
          const withTest = (name: string, changed: typeof test): RuleWithout => ({
            name: `${here.join(", ")}: ${name}`,
            rest: { ...rule, when: (rule.when ?? []).map((one, index) => (index === at ? changed : one)) },
          });
          if ("anyBitOf" in test) {
            return bitsOf(test.anyBitOf).map((bit) =>
              withTest(`0x${bit.toString(16)}`, { ...test, anyBitOf: (test.anyBitOf & ~bit) >>> 0 }),
            );
          }
          if ("isOneOf" in test) {
            return test.isOneOf.map((value) =>
              withTest(`0x${value.toString(16)}`, {
                ...test,
                isOneOf: test.isOneOf.filter((one) => one !== value),
              }),
            );
          }
          return [];
        });
  return [...calls, ...values];
}

function bitsOf(mask: number): readonly number[] {
  return Array.from({ length: 32 }, (_, index) => (1 << index) >>> 0).filter((bit) => (mask & bit) !== 0);
}
