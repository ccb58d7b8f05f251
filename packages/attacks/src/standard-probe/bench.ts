import type { Boundary, Capability, NetworkRule, SandboxSpec } from "@ambit/core/plugin";
import { filesystem, probeSpec } from "../probe/bench.js";
import { lazy } from "../probe/lazy.js";
import type * as kit from "../probe/trial.js";
import type { Decoys } from "./decoys.js";
import { type KernelInside, kernelOf } from "./kernel.js";
import type { Looking } from "./look.js";
import type { OpenOptions, ProbedSandbox, StandardProbe } from "./standard-probe.js";

export interface Bench extends Looking {
  readonly decoys: Decoys;
  /** Of the closed sandbox. */
  kernel(): Promise<KernelInside>;
  /** Without any limit. */
  unlimited(): Promise<ProbedSandbox>;
  /** Network off and only the workspace, if claimed. */
  closed(): Promise<ProbedSandbox>;
  /** One service of this host listed, and the workspace read-only. */
  listed(): Promise<ProbedSandbox>;
  /** Without a workspace. */
  empty(): Promise<ProbedSandbox>;
  /** Network off, if claimed. */
  readonly network: Pick<Partial<Boundary>, "network">;
  /** Only the workspace, if claimed. */
  readonly files: Pick<Partial<Boundary>, "filesystem">;
  /** Opens one more, which is closed with the others. */
  open(
    boundary: Partial<Boundary>,
    options?: OpenOptions & Partial<Pick<SandboxSpec, "secrets" | "requiredPaths">>,
  ): Promise<ProbedSandbox>;
}

export type Trial = kit.Trial<Bench, Capability>;

/** @param openSpec opens a sandbox that is closed at the end of the probe. */
export function makeBench(
  probe: StandardProbe,
  decoys: Decoys,
  signal: AbortSignal,
  openSpec: (spec: SandboxSpec, options: OpenOptions) => Promise<ProbedSandbox>,
): Bench {
  const claimed = (capability: Capability) => probe.claims.includes(capability);
  const open: Bench["open"] = (boundary, { secrets, requiredPaths = [], ...options } = {}) =>
    openSpec(probeSpec(boundary, { requiredPaths, ...(secrets === undefined ? {} : { secrets }) }), options);
  const network: Bench["network"] = claimed("network.deny") ? { network: { mode: "off", rules: [] } } : {};
  const files = (capability: Capability, mode: "workspace" | "readonly" | "off") =>
    claimed(capability) ? { filesystem: filesystem(mode) } : {};
  const hasLists = claimed("network.allow-cidr") || claimed("network.allow-host");
  const once = (boundary: Partial<Boundary>) => lazy(() => open(boundary));
  const closed = once({ ...network, ...files("filesystem.workspace-only", "workspace") });
  return {
    ...{ probe, decoys, signal, network, open },
    files: files("filesystem.workspace-only", "workspace"),
    unlimited: once({}),
    closed,
    kernel: lazy(async () => kernelOf(await closed(), { probe, signal })),
    listed: once({
      ...(hasLists ? { network: listedNetwork(decoys) } : network),
      ...files("filesystem.read-only", "readonly"),
    }),
    empty: once({ ...network, ...files("filesystem.none", "off") }),
  };
}

function listedNetwork({ host, listedPort: port }: Decoys): Boundary["network"] {
  const rules: NetworkRule[] = [
    { kind: "host", name: "localhost", subdomains: false, port },
    { kind: "range", cidr: `${host}/32`, family: 4, port },
    { kind: "range", cidr: "::1/128", family: 6, port },
  ];
  return { mode: "allowlist", rules };
}
