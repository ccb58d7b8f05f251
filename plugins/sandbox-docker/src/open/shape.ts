import { filesystem, unlimitedBoundary } from "@ambit/backend-kit";
import type { Boundary, SandboxSpec } from "@ambit/core/plugin";

/** What a container is made by. Two of one shape can take each other's place until a session has them. */
export interface Shape extends Pick<SandboxSpec, "boundary" | "required" | "requiredPaths"> {
  /** Whether the session has credentials that stay outside. */
  readonly hasSecrets: boolean;
}

/** Hosts and credentials are the runner's affair, and differ between sessions of one shape. Pure. */
export function shapeOf({ boundary, required, requiredPaths, secrets = [] }: SandboxSpec): Shape {
  const { network, resources } = boundary;
  const mode: Boundary["network"]["mode"] = network.mode === "on" ? "on" : "off";
  return {
    boundary: {
      ...unlimitedBoundary,
      network: { mode, rules: [] },
      filesystem: filesystem(boundary.filesystem.mode),
      resources,
    },
    required: required.toSorted(),
    requiredPaths,
    hasSecrets: secrets.length > 0,
  };
}
