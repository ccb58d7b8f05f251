import { type Boundary, type Capability, lazy, type NetworkRule, type SandboxSpec } from "@ambit/core/plugin";
import type { Looking } from "../inside/look.js";
import { LookBatcher } from "../inside/look-batcher.js";
import { filesystem, probeSpec } from "../probe/bench.js";
import type { StandardBench } from "./bench.js";
import type { ProbeDecoys } from "./decoys.js";
import { kernelOf } from "./kernel.js";
import type { ProbedSandbox, SandboxOverrides, StandardProbe } from "./standard-probe.js";
import { findTargets } from "./targets.js";

/** @param openSpec opens a sandbox that is closed at the end of the probe. */
export function makeBench<Box extends ProbedSandbox>(
  probe: StandardProbe<Box>,
  decoys: ProbeDecoys,
  signal: AbortSignal,
  openSpec: (spec: SandboxSpec, options: SandboxOverrides) => Promise<Box>,
): StandardBench<Box> {
  const claimed = (capability: Capability) => probe.claims.includes(capability);
  const open: StandardBench<Box>["open"] = (boundary, { secrets, requiredPaths = [], ...options } = {}) =>
    openSpec(probeSpec(boundary, { requiredPaths, secrets }), options);
  const opened = new Map<string, () => Promise<Box>>();
  const shared: StandardBench<Box>["shared"] = (boundary) => {
    const key = JSON.stringify(boundary);
    const known = opened.get(key) ?? lazy(() => open(boundary));
    opened.set(key, known);
    return known();
  };
  const network: StandardBench["network"] = claimed("network.deny")
    ? { network: { mode: "off", rules: [] } }
    : {};
  const filesWith = (
    capability: Capability,
    mode: "workspace" | "readonly" | "off",
  ): StandardBench["files"] => (claimed(capability) ? { filesystem: filesystem(mode) } : {});
  const files = filesWith("filesystem.workspace-only", "workspace");
  const hasLists = claimed("network.allow-cidr") || claimed("network.allow-host");
  // Each is a sandbox of its own, also where the claims leave no difference in their limits.
  const once = (boundary: Partial<Boundary>) => lazy(() => open(boundary));
  const closed = once({ ...network, ...files });
  const looking: Looking = { probe, signal, batcher: new LookBatcher() };
  const bench: StandardBench<Box> = {
    ...looking,
    probe,
    decoys,
    network,
    files,
    open,
    shared,
    unlimited: once({}),
    targets: lazy(() => findTargets(bench)),
    closed,
    kernel: lazy(async () => probe.kernel ?? kernelOf(await closed(), looking)),
    listed: once({
      ...(hasLists ? { network: listedNetwork(decoys) } : network),
      ...filesWith("filesystem.read-only", "readonly"),
    }),
    empty: once({ ...network, ...filesWith("filesystem.none", "off") }),
  };
  return bench;
}

function listedNetwork({ host, listedPort: port }: ProbeDecoys): Boundary["network"] {
  const rules: NetworkRule[] = [
    { kind: "host", name: "localhost", subdomains: false, port },
    { kind: "range", cidr: `${host}/32`, family: 4, port },
    { kind: "range", cidr: "::1/128", family: 6, port },
  ];
  return { mode: "allowlist", rules };
}
