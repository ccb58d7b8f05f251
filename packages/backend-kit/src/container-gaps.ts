import type { ActorGap, Boundary, Capability } from "@ambit/core/plugin";

/** Processes and threads that the sandbox itself needs, and a few for the run. */
const minProcesses = 20;
/** The engine's own minimum is 6 MiB, but the guest daemon needs this much. */
const minMemoryMb = 64;

const capabilityOf = {
  readonly: "filesystem.read-only",
  workspace: "filesystem.workspace-only",
  off: "filesystem.none",
} as const satisfies Record<string, Capability>;

/** The plugin whose workspaces with a size are in memory, and the most that its setting `maxDiskMb` gives one. */
export interface DiskInMemory {
  readonly plugin: string;
  readonly maxDiskMb: number;
}

/**
 * The parts of a boundary that no container with the bridge enforces: single paths, and limits that leave the guest daemon too
 * little. Pure.
 *
 * @param disk where workspaces with a size are in memory. Default: no size is too large, or `resources.disk` isn't claimed.
 */
export function containerGaps({ filesystem, resources }: Boundary, disk?: DiskInMemory): readonly ActorGap[] {
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
  if (memoryMb !== undefined && memoryMb < minMemoryMb) {
    gaps.push({
      capability: "resources.memory",
      reason: `a container of less than ${minMemoryMb} MiB is too small for the guest daemon and its shell`,
      fix: `set memoryMb to ${minMemoryMb} or more`,
    });
  }
  if (processes !== undefined && processes < minProcesses) {
    gaps.push({
      capability: "resources.processes",
      reason: `the sandbox itself needs part of ${minProcesses} processes and threads`,
      fix: `set processes to ${minProcesses} or more`,
    });
  }
  if (diskMb !== undefined && disk !== undefined && diskMb > disk.maxDiskMb) {
    gaps.push({
      capability: "resources.disk",
      reason: `a workspace with a limit is kept in memory, ${disk.maxDiskMb} MiB at most`,
      fix: `ask for ${disk.maxDiskMb} or less, or raise ${disk.plugin}'s maxDiskMb`,
    });
  }
  return gaps;
}
