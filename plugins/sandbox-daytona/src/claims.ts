import type { ActorGap, Boundary, Capability } from "@ambit/core/plugin";
import type { DaytonaConfig } from "./config.js";
import { inboundGaps } from "./inside/daemon.js";
import { networkGaps, resourceGaps } from "./limits.js";

const always = [
  "network.deny",
  "network.allow-cidr",
  "network.allow-host",
  "process.contained",
  "environment.named-only",
  "environment.per-tool",
  "secrets.hidden",
  "inbound.ports",
] as const satisfies readonly Capability[];

const withImage = [
  "resources.memory",
  "resources.cpu",
  "resources.disk",
] as const satisfies readonly Capability[];

export type Claim = (typeof always)[number] | (typeof withImage)[number];

/** What the platform may enforce, if the canary proves it. A snapshot has a fixed size. */
export function claimsOf({ image }: Pick<DaytonaConfig, "image">): readonly Claim[] {
  return image === undefined ? always : [...always, ...withImage];
}

/** The parts of a boundary that the platform doesn't support for any organisation. Pure. */
export function limitsOf(
  boundary: Boundary,
  config: Pick<DaytonaConfig, "image" | "maximum" | "wildcards">,
): readonly ActorGap[] {
  return [
    ...networkGaps(boundary.network, config),
    ...inboundGaps(boundary),
    ...filesystemGaps(boundary.filesystem),
    ...resourceGaps(boundary.resources, config),
  ];
}

const capabilityOf = {
  workspace: "filesystem.workspace-only",
  readonly: "filesystem.read-only",
  off: "filesystem.none",
} as const;

function filesystemGaps({ mode, readable, writable, denied }: Boundary["filesystem"]): readonly ActorGap[] {
  if (mode === "on") return [];
  const lists = readable.length + writable.length + denied.length > 0 ? ", lists of paths neither" : "";
  return [
    {
      capability: capabilityOf[mode],
      reason: `Daytona has no rules for paths${lists}: a program may write anywhere that its user may`,
      fix: 'leave filesystem out, since none of the runner\'s files are in the sandbox, or name the sandbox "local"',
    },
  ];
}
