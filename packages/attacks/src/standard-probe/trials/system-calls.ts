import { constants } from "node:os";
import type { Capability, Sandbox } from "@ambit/core/plugin";
import { expectConclusive, expectThat, NotProven } from "../../probe/trial.js";
import {
  allowedCall,
  type CallAttempt,
  callAttempts,
  numberOf,
  type SeccompArchitecture,
  type SyscallName,
  wordFor,
} from "../../system-calls/index.js";
import type { StandardBench, StandardTrial } from "../bench.js";
import { callInside, killed, type SystemCallResult } from "../kernel.js";

const { EPERM, EACCES, ENOSYS, EAFNOSUPPORT, EINVAL } = constants.errno;
/** What a filter answers, or a kernel without the call. The attempts' arguments lead to other errors in a kernel. */
const refusals: readonly SystemCallResult[] = [-EPERM, -EACCES, -ENOSYS, -EAFNOSUPPORT, killed];

/** What no namespace separates: sockets to the hypervisor, calls past a filter, and keys that a user id shares. */
const always: readonly SyscallName[] = [
  "socket",
  "io_uring_setup",
  "io_uring_enter",
  "io_uring_register",
  "add_key",
  "request_key",
  "keyctl",
];

/** Makes each call that must be refused, and one that must not be. @param further calls besides those. */
export function systemCallsTrial(further: readonly SyscallName[] = []): StandardTrial {
  const named = new Set([...always, ...further]);
  const attemptsOn = (machine: SeccompArchitecture) =>
    callAttempts(machine).filter(({ call }) => named.has(call));
  const shows = [...new Set(attemptsOn("x64").flatMap(({ capabilities }) => capabilities))];
  return {
    shows,
    async run(bench) {
      const sandbox = await bench.closed();
      const { machine, isGvisor } = await bench.kernel();
      if (isGvisor) return await ofGvisor(bench, sandbox, shows);
      const attempts = attemptsOn(machine);
      const allowed = allowedCall(machine);
      const results = await callInside(sandbox, bench, [...attempts, allowed]);
      expectConclusive(
        results.at(-1) === -EINVAL,
        `the call ${allowed.name} didn't reach the kernel (${answerWord(results.at(-1))}), so nothing is shown`,
      );
      return Object.fromEntries(
        shows.map((capability) => [capability, judge(capability, attempts, results)]),
      );
    },
  };
}

/** What its calls do stays inside; but a socket to the hypervisor would be one. */
async function ofGvisor(bench: StandardBench, sandbox: Sandbox, shows: readonly Capability[]) {
  const number = numberOf("socket", (await bench.kernel()).machine);
  const [result = 0] = await callInside(sandbox, bench, [{ number, arguments: [vsock, stream, 0n] }]);
  expectThat(result === killed || result < 0, "a socket to the hypervisor can be opened (vsock)");
  return Object.fromEntries(
    shows.map((capability) => [capability, "gVisor's own kernel answers system calls, and has no vsock"]),
  );
}

const [vsock, stream] = [40n, 1n];

function judge(
  capability: Capability,
  attempts: readonly CallAttempt[],
  results: readonly SystemCallResult[],
): string | NotProven {
  const tried = attempts.flatMap((attempt, index) =>
    attempt.capabilities.includes(capability) ? [{ ...attempt, result: results[index] ?? 0 }] : [],
  );
  const passed = tried.filter(({ result }) => !refusals.includes(result));
  if (passed.length === 0)
    return `${tried.length} system calls were refused, and one that is harmless wasn't`;
  const words = passed.map(({ name, result }) => `${name} (${answerWord(result)})`);
  return new NotProven(`system calls reach the kernel: ${words.join(", ")}`);
}

const answerWord = (result: SystemCallResult | undefined) => (result === killed ? killed : wordFor(result));
