import { randomUUID } from "node:crypto";
import { constants } from "node:os";
import type { Sandbox } from "@ambit/core/plugin";
import { type Looking, tryInside } from "../inside/look.js";
import { Inconclusive } from "../probe/trial.js";
import {
  allowedCall,
  isSeccompArchitecture,
  type NumberedCall,
  resultsIn,
  type SeccompArchitecture,
  seccompArchitectures,
  systemCallProgram,
} from "../system-calls/index.js";
import type { KernelInside } from "./standard-probe.js";

/** @throws Inconclusive where no system call is known */
export async function kernelOf(sandbox: Sandbox, bench: Looking): Promise<KernelInside> {
  try {
    const { machine, kernel } = await tryInside(sandbox, bench, {
      machine: { try: "machine" },
      kernel: { try: "kernel" },
    });
    if (typeof machine === "string" && isSeccompArchitecture(machine))
      // In the version of every release of gVisor.
      return { machine, isGvisor: kernel?.includes("PST 2016") === true };
    throw new Inconclusive(`no system call is known on ${machine}`);
  } catch (error) {
    // Node.js doesn't start there, so a program without it says on which machine it runs.
    for (const machine of seccompArchitectures)
      if ((await firstResult(sandbox, bench, machine)) !== undefined) return { machine, isGvisor: false };
    throw error;
  }
}

/** Of a call that every machine has and every filter allows; undefined where no such program runs. */
async function firstResult(sandbox: Sandbox, bench: Looking, machine: SeccompArchitecture) {
  try {
    return (await runProgram(sandbox, bench, systemCallProgram(machine, [allowedCall(machine)]))).results[0];
  } catch (error) {
    if (bench.signal.aborted) throw error;
    return undefined;
  }
}

/** The result of a call that ended its process: a filter may kill instead of answering. */
export const killed = "killed";
export type SystemCallResult = number | typeof killed;

/** Makes system calls as a process of the run. Each result is what the kernel returned: -errno, or 0 and above. */
export async function callInside(
  sandbox: Sandbox,
  bench: Looking & { kernel(): Promise<KernelInside> },
  calls: readonly NumberedCall[],
): Promise<readonly SystemCallResult[]> {
  const { machine } = await bench.kernel();
  const results: SystemCallResult[] = [];
  while (results.length < calls.length) {
    const program = systemCallProgram(machine, calls.slice(results.length));
    const { results: further, ending } = await runProgram(sandbox, bench, program);
    results.push(...further);
    if (results.length >= calls.length) break;
    if (ending !== "SIGSYS")
      throw new Inconclusive(`the program that makes system calls ended with ${ending}`);
    results.push(killed);
  }
  return results;
}

/** Milliseconds for a program whose calls all return at once. */
const limitMs = 10_000;
/** What a shell, or a jail's first process, says of a program that SIGSYS ended. */
const sigsysCode = 128 + constants.signals.SIGSYS;

/**
 * Runs a static program by itself, so that it needs nothing inside: where a run's processes can't start Node.js, they can still
 * make system calls. From the home where the workspace doesn't let it, such as one that is mounted `noexec`.
 */
async function runProgram(sandbox: Sandbox, { signal }: Pick<Looking, "signal">, content: Buffer) {
  const run = async (folder: string, role?: "agent") => {
    const path = `${folder}/ambit-calls-${randomUUID()}`;
    await sandbox.writeFiles([{ path, content, executable: true }]);
    const limited = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    const started = await sandbox.spawn({ argv: [path], env: {}, cwd: "/", signal: limited, role });
    const [output, exit] = await Promise.all([
      new Response(started.stdout).arrayBuffer(),
      started.exit,
      started.stderr.pipeTo(new WritableStream()).catch(() => undefined),
      started.stdin.close().catch(() => undefined),
    ]);
    const ending = exit.code === sigsysCode ? "SIGSYS" : `${exit.signal ?? exit.code}`;
    return { results: resultsIn(new Uint8Array(output)), ending };
  };
  return await run(sandbox.workspace).catch((error: unknown) => {
    if (signal.aborted) throw error;
    return run(sandbox.home, "agent");
  });
}
