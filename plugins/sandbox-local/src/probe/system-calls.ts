import { constants } from "node:os";
import {
  allowedCall,
  type CallAttempt,
  callAttempts,
  foreignCallProgram,
  isSeccompArchitecture,
  numberOf,
  resultsIn,
  type SeccompArchitecture,
  type SyscallName,
  systemCallProgram,
  wordFor,
} from "@ambit/attacks/system-calls";
import { errnoOf, x32Bit } from "@ambit/backend-kit/system-call-filter";
import { type Claim, claims } from "../claims.js";
import type { ConfinedSandbox } from "../confined/session.js";
import { expectThat, type LocalTrial, NotProven } from "./trial.js";

/** An attempt with the filter's result for it. */
interface RefusedCall extends Omit<CallAttempt, "call" | "capabilities"> {
  readonly capabilities: readonly Claim[];
  /** -errno. */
  readonly answer: number;
}

/** What this filter refuses of the kit's attempts, and x32. @throws RangeError for one that no rule refuses. */
export function refusals(architecture: SeccompArchitecture): readonly RefusedCall[] {
  const attempts = callAttempts(architecture).map(({ capabilities, call, ...attempt }) => ({
    ...attempt,
    capabilities: claims.filter((claim) => capabilities.includes(claim)),
    answer: refusalOf(call, attempt.arguments),
  }));
  return architecture === "x64" ? [...attempts, x32Refusal] : attempts;
}

/** What a call of another architecture would bypass. */
const claimsOnEveryRule: readonly Claim[] = claims.filter((claim) =>
  callAttempts("x64").some(({ capabilities }) => capabilities.includes(claim)),
);

/** Calls with 32-bit pointers have separate numbers, which no rule names; `getpid` represents them all. */
const x32Refusal: RefusedCall = {
  name: "getpid, with 32-bit pointers",
  number: numberOf("getpid", "x64") + x32Bit.number,
  arguments: [],
  capabilities: claimsOnEveryRule,
  answer: -x32Bit.errno,
};

function refusalOf(call: SyscallName, callArguments: readonly bigint[]): number {
  const errno = errnoOf(call, callArguments);
  if (errno === undefined) throw new RangeError(`No rule refuses ${call} with ${callArguments.join(", ")}`);
  return -errno;
}

/**
 * Makes every system call that the filter refuses, with arguments that the kernel refuses with another error. So each
 * result shows whether the filter or the kernel refused it, and no attempt has an effect without the filter.
 */
export const systemCalls: LocalTrial = {
  shows: claimsOnEveryRule,
  run: async (bench) => {
    const architecture = process.arch;
    expectThat(isSeccompArchitecture(architecture), `no system call is known on ${architecture}`);
    const sandbox = await bench.closed();
    const attempts = refusals(architecture);
    const allowed = allowedCall(architecture);
    const program = systemCallProgram(architecture, [...attempts, allowed]);
    const made = await runPrograms(sandbox, program, foreignCallProgram(architecture), attempts.length + 1);
    const { results, code } = made;
    expectThat(
      code === 0 && results.length === attempts.length + 1,
      `the system calls weren't all made: ${results.length} of ${attempts.length + 1}, exit code ${code}`,
    );
    expectThat(
      results.at(-1) === -constants.errno.EINVAL,
      `the call ${allowed.name} didn't reach the kernel (${wordFor(results.at(-1))}), so nothing is proven`,
    );
    const foreign = made.foreign && judgeForeign(made.foreign);
    return Object.fromEntries(
      claimsOnEveryRule.map((capability) => [capability, foreign ?? judge(capability, attempts, results)]),
    );
  },
};

function judge(
  capability: Claim,
  attempts: readonly RefusedCall[],
  results: readonly number[],
): string | NotProven {
  const tried = attempts.flatMap((attempt, index) =>
    attempt.capabilities.includes(capability) ? [{ ...attempt, result: results[index] }] : [],
  );
  const passed = tried.filter(({ answer, result }) => result !== answer);
  if (passed.length === 0) {
    return `${tried.length} system calls were refused by the filter, and others weren't`;
  }
  const words = passed.map(
    ({ name, answer, result }) => `${name}: ${wordFor(result)}, not ${wordFor(answer)}`,
  );
  return new NotProven(`the filter lets system calls through to the kernel: ${words.join("; ")}`);
}

interface Ended {
  readonly results: readonly number[];
  readonly code: number;
}

/** What is wrong if a call of another architecture doesn't kill its process. */
function judgeForeign({ results, code }: Ended): NotProven | undefined {
  if (code === 128 + constants.signals.SIGSYS) return undefined;
  return new NotProven(
    `a system call of another architecture, which no rule names, ended with ${wordFor(results[0])} and exit code ${code}`,
  );
}

/**
 * Runs the programs in one jail.
 *
 * @param count how many results the first one has.
 */
async function runPrograms(
  sandbox: ConfinedSandbox,
  calls: Buffer,
  foreignCall: Buffer | undefined,
  count: number,
): Promise<Ended & { readonly foreign?: Ended }> {
  const path = `${sandbox.workspace}/calls`;
  const foreignPath = `${sandbox.workspace}/foreign-call`;
  await sandbox.writeFiles([
    { path, content: calls, executable: true },
    ...(foreignCall === undefined ? [] : [{ path: foreignPath, content: foreignCall, executable: true }]),
  ]);
  // Behind the results, which are binary: both exit codes.
  const script = foreignCall === undefined ? '"$0"; echo " $? "' : '"$0"; calls=$?; "$1"; echo " $calls $?"';
  const started = await sandbox.spawn({ argv: ["/bin/sh", "-c", script, path, foreignPath], env: {} });
  const [output] = await Promise.all([
    new Response(started.stdout).arrayBuffer(),
    new Response(started.stderr).arrayBuffer(),
    started.exit,
  ]);
  const bytes = Buffer.from(output);
  const end = bytes.lastIndexOf(" ", bytes.lastIndexOf(" ") - 1);
  const [code, foreignCode] = bytes
    .subarray(Math.max(0, end))
    .toString("latin1")
    .trim()
    .split(" ")
    .map(Number);
  const all = resultsIn(bytes.subarray(0, Math.max(0, end)));
  return {
    results: all.slice(0, count),
    code: code ?? Number.NaN,
    ...(foreignCode === undefined ? {} : { foreign: { results: all.slice(count), code: foreignCode } }),
  };
}
