import type { Boundary, NetworkBoundary } from "@ambit/core/plugin";
import type { RemovableMechanism } from "./mechanisms.ts";

/** A boundary without the mechanisms' part of it. Pure. @param listed an allowlist of decoys only. */
export function weakenedBoundary(
  boundary: Boundary,
  without: readonly RemovableMechanism[],
  listed: NetworkBoundary,
): Boundary {
  const lacks = (mechanism: RemovableMechanism) => without.includes(mechanism);
  const { network, filesystem, resources } = boundary;
  return {
    ...boundary,
    network:
      lacks("network namespace") || lacks("inbound relay")
        ? { mode: "on", rules: [] }
        : lacks("allowlist")
          ? listed
          : network,
    filesystem: {
      ...filesystem,
      ...(lacks("workspace mode") ? { mode: "workspace" } : {}),
      ...(lacks("path rules") ? { readable: [], writable: [], denied: [] } : {}),
    },
    resources: lacks("limits") ? {} : resources,
  };
}
