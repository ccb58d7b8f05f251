import type { Boundary, Capability, SandboxSpec } from "@ambit/core/plugin";
import type { Looking } from "../inside/look.js";
import type * as probe from "../probe/trial.js";
import type { ProbeDecoys } from "./decoys.js";
import type {
  KernelInside,
  ProbedSandbox,
  ProbeTarget,
  SandboxOverrides,
  StandardProbe,
} from "./standard-probe.js";

/** Where decoys listen, and which of them a sandbox without limits reaches: an unreachable one shows nothing. */
export interface Targets {
  readonly targets: readonly ProbeTarget[];
  /** Undefined if it reaches none. */
  readonly reached: (ProbeTarget & { readonly what: string }) | undefined;
  /** The network links of a sandbox without limits, except `lo`. */
  readonly links: string | null;
}

export interface StandardBench<Box extends ProbedSandbox = ProbedSandbox> extends Looking {
  readonly probe: StandardProbe<Box>;
  readonly decoys: ProbeDecoys;
  /** Of the closed sandbox. */
  kernel(): Promise<KernelInside>;
  /** Without any limit. */
  unlimited(): Promise<Box>;
  /** What one without limits reaches. */
  targets(): Promise<Targets>;
  /** Network off and only the workspace, if claimed. */
  closed(): Promise<Box>;
  /** One service of this host listed, and the workspace read-only. */
  listed(): Promise<Box>;
  /** Without a workspace. */
  empty(): Promise<Box>;
  /** Network off, if claimed. */
  readonly network: Pick<Partial<Boundary>, "network">;
  /** Only the workspace, if claimed. */
  readonly files: Pick<Partial<Boundary>, "filesystem">;
  /** One sandbox with these limits for all trials. Only for processes that end with their trial. */
  shared(boundary: Partial<Boundary>): Promise<Box>;
  /** Opens one more, which is closed with the others. */
  open(
    boundary: Partial<Boundary>,
    options?: SandboxOverrides & Partial<Pick<SandboxSpec, "secrets" | "requiredPaths">>,
  ): Promise<Box>;
}

export type StandardTrial<
  Box extends ProbedSandbox = ProbedSandbox,
  Claim extends Capability = Capability,
> = probe.Trial<StandardBench<Box>, Claim>;
