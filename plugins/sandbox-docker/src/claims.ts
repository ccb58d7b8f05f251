import { type ActorGap, type Boundary, type Capability, capabilities } from "@ambit/core/plugin";
import type { DockerConfig } from "./config.js";

/** All of them. What an engine or a runtime can't enforce, the probe finds. */
export const claims = capabilities;

/** Threads and processes of the sandbox itself, and a few of the run's. */
const fewestProcesses = 20;
/** The engine's own least is 6; the guest daemon needs this much. */
const leastMemoryMb = 64;

const capabilityOf = {
  readonly: "filesystem.read-only",
  workspace: "filesystem.workspace-only",
  off: "filesystem.none",
} as const satisfies Record<string, Capability>;

/** What of a boundary no container enforces. Pure. */
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
      reason: `a container of less than ${leastMemoryMb} MiB has no room for what it needs itself`,
      fix: `set memoryMb to ${leastMemoryMb} or more`,
    });
  }
  if (processes !== undefined && processes < fewestProcesses) {
    gaps.push({
      capability: "resources.processes",
      reason: `a container needs some of ${fewestProcesses} processes and threads itself`,
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
