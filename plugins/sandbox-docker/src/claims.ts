import { type ActorGap, type Boundary, type Capability, capabilities } from "@ambit/core/plugin";
import type { DockerConfig } from "./config.js";

/** All capabilities. The probe finds what an engine or a runtime can't enforce. */
export const claims = capabilities;

/** Processes and threads that the sandbox itself needs, and a few for the run. */
const fewestProcesses = 20;
/** The engine's own minimum is 6 MiB; the guest daemon needs this much. */
const leastMemoryMb = 64;

const capabilityOf = {
  readonly: "filesystem.read-only",
  workspace: "filesystem.workspace-only",
  off: "filesystem.none",
} as const satisfies Record<string, Capability>;

/** The parts of a boundary that no container enforces. Pure. */
export function limitsOf({ filesystem, resources }: Boundary, config: DockerConfig): readonly ActorGap[] {
  const gaps: ActorGap[] = [];
  const { mode, readable, writable, denied } = filesystem;
  if (mode !== "on" && readable.length + writable.length + denied.length > 0) {
    gaps.push({
      capability: capabilityOf[mode],
      reason: "single paths are listed, and a container's workspace has one rule for all of it",
      fix: 'leave readable, writable and denied out, or name the sandbox "local"',
    });
  }
  const { memoryMb, processes, diskMb } = resources;
  if (memoryMb !== undefined && memoryMb < leastMemoryMb) {
    gaps.push({
      capability: "resources.memory",
      reason: `a container of less than ${leastMemoryMb} MiB is too small for the guest daemon and its shell`,
      fix: `set memoryMb to ${leastMemoryMb} or more`,
    });
  }
  if (processes !== undefined && processes < fewestProcesses) {
    gaps.push({
      capability: "resources.processes",
      reason: `the sandbox itself needs part of ${fewestProcesses} processes and threads`,
      fix: `set processes to ${fewestProcesses} or more`,
    });
  }
  if (diskMb !== undefined && diskMb > config.largestDiskMb) {
    gaps.push({
      capability: "resources.disk",
      reason: `a workspace with a limit is kept in memory, ${config.largestDiskMb} MiB at most`,
      fix: `ask for ${config.largestDiskMb} or less, or raise sandbox-docker's largestDiskMb`,
    });
  }
  return gaps;
}
