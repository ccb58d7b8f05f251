import { filesystem, unlimitedBoundary } from "@ambit/attacks/probe";
import type { Boundary, SandboxSpec } from "@ambit/core/plugin";

/**
 * What a sandbox is created with if a proxy of the runner handles hosts and credentials. Two of the same shape are
 * interchangeable until a session has them.
 */
export interface Shape extends Pick<SandboxSpec, "boundary" | "required" | "requiredPaths"> {
  /** Whether the session has credentials that stay outside. */
  readonly hasSecrets: boolean;
}

/** Leaves out what differs between sessions of one shape: hosts, credentials. Pure. */
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
