import { constants } from "node:os";
import type { Claim } from "../../claims.js";
import type { ConfinedSandbox } from "../../confined/sandbox.js";
import { isSeccompArchitecture, type SeccompArchitecture, syscallNumber } from "../../seccomp/index.js";
import { expectThat, NotProven, type Trial } from "../trial.js";
import { allowedCall, type CallAttempt, callAttempts, claimsOnEveryRule } from "./attempts.js";
import { foreignCallProgram, resultsIn, systemCallProgram } from "./program.js";

/**
 * Makes every system call that the filter refuses, with arguments that the kernel refuses with another error. So each
 * result shows whether the filter or the kernel refused it, and no attempt has an effect without the filter.
 */
export const systemCalls: Trial = {
  shows: claimsOnEveryRule,
  run: async (bench) => {
    const architecture = process.arch;
    expectThat(isSeccompArchitecture(architecture), `no system call is known on ${architecture}`);
    const sandbox = await bench.open({ network: { mode: "off", rules: [] } });
    const attempts = callAttempts(architecture);
    const allowed = { ...allowedCall, number: syscallNumber(allowedCall.call, architecture) ?? -1 };
    const program = systemCallProgram(architecture, [...attempts, allowed]);
    const { output, code } = await runProgram(sandbox, "calls", program);
    const results = resultsIn(output);
    expectThat(
      code === 0 && results.length === attempts.length + 1,
      `the system calls weren't all made: ${results.length} of ${attempts.length + 1}, exit code ${code}`,
    );
    expectThat(
      results.at(-1) === -constants.errno.EINVAL,
      `the call ${allowedCall.name} didn't reach the kernel (${wordFor(results.at(-1))}), so nothing is proven`,
    );
    const foreign = await foreignCall(sandbox, architecture);
    return Object.fromEntries(
      claimsOnEveryRule.map((capability) => [capability, foreign ?? judge(capability, attempts, results)]),
    );
  },
};

function judge(
  capability: Claim,
  attempts: readonly CallAttempt[],
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

/** What is wrong if a call of another architecture doesn't kill its process. */
async function foreignCall(
  sandbox: ConfinedSandbox,
  architecture: SeccompArchitecture,
): Promise<NotProven | undefined> {
  const program = foreignCallProgram(architecture);
  if (program === undefined) return undefined;
  const { output, code } = await runProgram(sandbox, "foreign-call", program);
  if (code === 128 + constants.signals.SIGSYS) return undefined;
  return new NotProven(
    `a system call of another architecture, which no rule names, ended with ${wordFor(resultsIn(output)[0])} and exit code ${code}`,
  );
}

async function runProgram(
  sandbox: ConfinedSandbox,
  name: string,
  content: Buffer,
): Promise<{ output: Uint8Array; code: number | null }> {
  const path = `${sandbox.workspace}/${name}`;
  await sandbox.writeFiles([{ path, content, executable: true }]);
  const started = await sandbox.spawn({ argv: ["/bin/sh", "-c", '"$0"; exit $?', path], env: {} });
  const [output, , { code }] = await Promise.all([
    new Response(started.stdout).arrayBuffer(),
    new Response(started.stderr).arrayBuffer(),
    started.exit,
  ]);
  return { output: new Uint8Array(output), code };
}

function wordFor(result: number | undefined): string {
  if (result === undefined) return "no answer";
  if (result >= 0) return "success";
  return Object.entries(constants.errno).find(([, errno]) => errno === -result)?.[0] ?? String(result);
}
