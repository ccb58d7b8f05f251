import type { ActorGap, Boundary, Capability } from "@ambit/core/plugin";
import { inboundGaps, loopbackGaps } from "./confined/loopback.js";

/** What confined sandboxes of this host enforce, as far as the probe proves it. Unconfined ones enforce nothing. */
export const claims = [
  "network.deny",
  "network.allow-cidr",
  "network.allow-host",
  "filesystem.read-only",
  "filesystem.workspace-only",
  "filesystem.none",
  "filesystem.host-hidden",
  "process.contained",
  "environment.named-only",
  "environment.per-tool",
  "resources.memory",
  "resources.processes",
  "resources.cpu",
  "resources.disk",
  "secrets.hidden",
  "inbound.ports",
] as const satisfies readonly Capability[];

export type Claim = (typeof claims)[number];

/** The parts of a boundary that this backend can't enforce on any host. Pure. */
export function limitsOf(boundary: Boundary): readonly ActorGap[] {
  const { network, filesystem, secrets } = boundary;
  const gaps: ActorGap[] = [...loopbackGaps(network), ...inboundGaps(boundary)];
  if (filesystem.mode === "readonly" && filesystem.writable.length > 0) {
    gaps.push({
      capability: "filesystem.read-only",
      reason: "a path is listed as writable",
      fix: 'use the mode "workspace" with this list: the rest is read-only then',
    });
  }
  if (filesystem.mode === "off" && filesystem.writable.length + filesystem.readable.length > 0) {
    gaps.push({
      capability: "filesystem.none",
      reason: "paths of the workspace are listed",
      fix: 'use the mode "workspace" or "readonly" with these lists',
    });
  }
  if (secrets === "hidden" && network.mode === "on") {
    gaps.push({
      capability: "secrets.hidden",
      reason: "the network is the host's own, and nothing there replaces a placeholder",
      fix: 'set sandboxPermission.network to "off" or to an allowlist',
    });
  }
  return gaps;
}
