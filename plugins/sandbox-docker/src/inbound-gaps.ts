import type { ActorGap, Boundary } from "@ambit/core/plugin";
import type { DockerConfig } from "./config.js";

/**
 * Why connections to ports inside might lead elsewhere. A container without a network has a loopback of its own; in a network
 * with options, such as Podman's `pasta:-T,auto`, its ports may be this host's. Pure.
 */
export function inboundGaps(
  { inbound, network: { mode } }: Boundary,
  { network }: Pick<DockerConfig, "network">,
): readonly ActorGap[] {
  if (inbound === undefined || mode !== "on" || !network.includes(":")) return [];
  return [
    {
      capability: "inbound.ports",
      reason: `sandbox-docker's network "${network}" has options, by which ports inside may be this host's`,
      fix: 'set sandboxPermission.network to "off" or an allowlist, or sandbox-docker\'s network to a name without options',
    },
  ];
}
