import type { ActorGap, Boundary, RunRequest } from "@ambit/core/plugin";
import { destinationGap, entryFor, portOf, whyForbidden } from "@ambit/egress";
import type { CallbackConfig } from "./config.js";
import { boundaryPolicy } from "./connection/outbound.js";

const connects = "its calls are posted from the runner to";
const otherwise = 'remove the tool, or accept this with enforcement "best_effort"';

/**
 * A callback is posted from the runner, so its destination is egress of the run: it must be on the list that the
 * sandbox is held to. A direct call goes to the same origin. Pure.
 */
export function gapsOfCallback(
  boundary: Boundary,
  request: RunRequest,
  config: CallbackConfig,
): readonly ActorGap[] {
  const endpoint = request.toolCallback?.endpoint;
  if (endpoint === undefined || boundary.network.mode === "on") return [];
  const url = new URL(endpoint);
  const unlisted = destinationGap(boundary.network, url, { connects, otherwise });
  if (unlisted !== undefined) return [unlisted];
  if (!isLoopbackName(url)) return [];
  const policy = boundaryPolicy(boundary, config);
  const port = portOf(url);
  // Hosts resolve it to both, and one closed address refuses the name.
  if (["127.0.0.1", "::1"].every((each) => whyForbidden([policy], each, port) === undefined)) return [];
  const listed = `"127.0.0.1:${port}" and "[::1]:${port}"`;
  return [
    {
      capability: "network.allow-host",
      reason: `${connects} ${entryFor(url)}, a name for the loopback addresses, and a listed name may resolve to them only where both are listed`,
      fix: `list ${listed} too, ask the deployer to add 127.0.0.0/8 and ::1 to executor-callback's allowedRanges, or ${otherwise}`,
    },
  ];
}

/** Names that RFC 6761 binds to the loopback address: no lookup is needed to know where they lead. */
function isLoopbackName({ hostname }: URL): boolean {
  return /(^|\.)localhost\.?$/.test(hostname);
}
