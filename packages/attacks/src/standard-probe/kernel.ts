import type { Sandbox } from "@ambit/core/plugin";
import { type Looking, tryInside } from "../inside/look.js";
import { Inconclusive } from "../probe/trial.js";
import {
  isSeccompArchitecture,
  type NumberedCall,
  resultsIn,
  systemCallProgram,
} from "../system-calls/index.js";
import type { KernelInside } from "./standard-probe.js";

export async function kernelOf(sandbox: Sandbox, bench: Looking): Promise<KernelInside> {
  const { machine, kernel } = await tryInside(sandbox, bench, {
    machine: { try: "machine" },
    kernel: { try: "kernel" },
  });
  if (typeof machine !== "string" || !isSeccompArchitecture(machine))
    throw new Inconclusive(`no system call is known on ${machine}`);
  // In the version of every release of gVisor.
  return { machine, isGvisor: kernel?.includes("PST 2016") === true };
}

/** The result of a call that ended its process: a filter may kill instead of answering. */
export const killed = "killed";
export type SystemCallResult = number | typeof killed;

/** Makes system calls as a process of the run. Each result is what the kernel returned: -errno, or 0 and above. */
export async function callInside(
  sandbox: Sandbox,
  bench: Looking & { kernel(): Promise<KernelInside> },
  calls: readonly NumberedCall[],
  role?: "agent",
): Promise<readonly SystemCallResult[]> {
  const { machine } = await bench.kernel();
  const path = `${sandbox.workspace}/ambit-calls-${calls.length}`;
  const results: SystemCallResult[] = [];
  while (results.length < calls.length) {
    const content = systemCallProgram(machine, calls.slice(results.length));
    await sandbox.writeFiles([{ path, content, executable: true }]);
    const { run } = await tryInside(sandbox, bench, { run: { try: "run", path } }, { role });
    const [ending = "", output = ""] = run?.split(" ") ?? [];
    results.push(...resultsIn(Buffer.from(output, "base64")));
    if (results.length >= calls.length) break;
    if (ending !== "SIGSYS")
      throw new Inconclusive(`the program that makes system calls ended with ${ending || "an error"}`);
    results.push(killed);
  }
  return results;
}
