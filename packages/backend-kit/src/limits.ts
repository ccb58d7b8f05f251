import {
  type ActorGap,
  type Boundary,
  type Capability,
  type Finding,
  type HiddenCredential,
  type Hiding,
  SandboxFailed,
  type SandboxSpec,
} from "@ambit/core/plugin";

export interface Limits {
  /** For the error: `The Daytona sandbox`. */
  readonly sandbox: string;
  readonly claims: readonly Capability[];
  /** The parts of the boundary that can't be enforced, as the backend states them to the planner. */
  readonly gaps: readonly ActorGap[];
  /** The findings of the last probe, if the platform determines what it enforces. Default: none. */
  readonly findings?: readonly Finding[];
  /** Whether the backend hides one of the spec's secrets. Default: they aren't checked. */
  readonly hides?: (credential: HiddenCredential) => Hiding;
}

/**
 * The first step of `open`, which never opens anything weaker than requested.
 *
 * @throws SandboxFailed for what the backend can't enforce on any host or platform.
 */
export function refuseBeyond(
  { sandbox, claims, gaps, findings = [], hides = () => true }: Limits,
  { required, secrets = [] }: Pick<SandboxSpec, "required" | "secrets">,
): void {
  const [gap] = gaps;
  if (gap !== undefined) throw new SandboxFailed(`${gap.capability}: ${gap.reason}: ${gap.fix}`);
  const unclaimed = required.find((capability) => !claims.includes(capability));
  if (unclaimed !== undefined) throw new SandboxFailed(`${sandbox} doesn't enforce ${unclaimed}`);
  for (const finding of findings) {
    if (finding.proven || !required.includes(finding.capability)) continue;
    throw new SandboxFailed(
      `${sandbox} doesn't enforce ${finding.capability}: ${finding.reason}: ${finding.fix}`,
    );
  }
  for (const secret of secrets) {
    const hiding = hides(secret);
    if (hiding === true) continue;
    throw new SandboxFailed(`${sandbox} can't keep ${secret.name} outside: ${hiding.reason}: ${hiding.fix}`);
  }
}

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
