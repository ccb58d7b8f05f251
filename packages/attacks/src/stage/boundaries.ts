import { normaliseBoundary, requirementsOf, runRequestSchema, sandboxPermissionSchema } from "@ambit/core";
import type { Boundary, Capability, RunRequest } from "@ambit/core/plugin";
import type { z } from "zod";
import type { Decoys } from "../decoys/decoys.js";
import { entryOf, listedZone, loopback } from "../decoys/place.js";

type Permission = z.input<typeof sandboxPermissionSchema>;

/** Limits small enough to be broken quickly, and large enough for an interpreter to run within. */
export const smallLimits = { memoryMb: 96, processes: 24, cpus: 0.1, diskMb: 16 } as const;

/** Further parts of the boundary that a capability's attacks need. */
export type BoundaryOverrides = Pick<Permission, "network" | "filesystem" | "resources">;

/** A boundary and the capabilities that it requires. */
export interface Demand {
  readonly boundary: Boundary;
  readonly required: readonly Capability[];
}

type Destinations = Pick<Decoys, "place" | "listed" | "listed6" | "keys" | "onLoopback" | "freePorts">;

/** The smallest boundary that requires a capability, in the form of a request. */
export function permissionFor(
  capability: Capability,
  claims: readonly Capability[],
  { place, listed, listed6, keys }: Destinations,
): Permission {
  const { memoryMb, processes, cpus, diskMb } = smallLimits;
  switch (capability) {
    case "network.deny":
      return { network: "off" };
    case "network.allow-cidr":
      return { network: { allowlist: [entryOf(listed)] } };
    case "network.allow-host":
      // A listed name that resolves to an address of this host needs that listed too, if that is supported.
      return {
        network: {
          allowlist: [
            place.listedName,
            `*.${listedZone}`,
            ...(claims.includes("network.allow-cidr")
              ? [
                  entryOf(listed),
                  // In both address families: a name may resolve to an address that this host doesn't have.
                  ...(place === loopback ? [entryOf({ host: "::1", port: listed.port })] : []),
                  ...(listed6 === undefined ? [] : [entryOf(listed6)]),
                ]
              : []),
          ],
        },
      };
    case "filesystem.read-only":
      return { filesystem: "readonly" };
    case "filesystem.workspace-only":
      return { filesystem: "workspace" };
    case "filesystem.none":
      return { filesystem: "off" };
    case "filesystem.host-hidden":
      return { filesystem: filesystemModeOf(claims) };
    case "resources.memory":
      return { resources: { memoryMb } };
    case "resources.processes":
      return { resources: { processes } };
    case "resources.cpu":
      return { resources: { cpus } };
    case "resources.disk":
      return { resources: { diskMb } };
    case "secrets.hidden":
      if (keys !== undefined) return { secrets: "hidden", network: { allowlist: [...keys.allowlist] } };
      // If a network can be restricted, hiding includes that: without it, connections could bypass the proxy.
      return { secrets: "hidden", ...(claims.includes("network.deny") ? { network: "off" } : {}) };
    case "inbound.ports":
      // With the host's network, the ports inside would be the host's.
      return claims.includes("network.deny") ? { network: "off" } : {};
    case "process.contained":
    case "environment.named-only":
    case "environment.per-tool":
      return {};
  }
}

/** The ports inside that a capability's boundary opens to the runner, one of which the host's own loopback uses. */
function portsFor(capability: Capability, { onLoopback, freePorts }: Destinations): RunRequest["ports"] {
  if (capability !== "inbound.ports") return undefined;
  return [onLoopback.port, ...freePorts].map((port) => ({ port, name: `decoy-${port}` }));
}

/** A claim of `host-hidden` is tested with one of the three capabilities that need it. */
function filesystemModeOf(claims: readonly Capability[]): "workspace" | "readonly" | "off" {
  if (claims.includes("filesystem.workspace-only")) return "workspace";
  return claims.includes("filesystem.none") && !claims.includes("filesystem.read-only") ? "off" : "readonly";
}

/** The requirements of `open` when a capability is tested. */
export function demandFor(
  capability: Capability,
  claims: readonly Capability[],
  destinations: Destinations,
  overrides: BoundaryOverrides = {},
): Demand {
  const permission = { ...permissionFor(capability, claims, destinations), ...overrides };
  const { boundary, issues } = normaliseBoundary(
    sandboxPermissionSchema.parse(permission),
    portsFor(capability, destinations),
  );
  if (issues.length > 0) throw new Error(`the kit's own boundary is wrong: ${JSON.stringify(issues)}`);
  const required = requirementsOf(boundary, runRequestSchema.parse({})).map((one) => one.capability);
  // A boundary may need more than is claimed: a capability is tested alone, together with the claims that it depends
  // on.
  const asked = required.filter((one) => one === capability || claims.includes(one));
  return { boundary, required: [...new Set([...asked, capability])] };
}

/** A request that can't be run without the capability. */
export function requestFor(
  capability: Capability,
  claims: readonly Capability[],
  destinations: Destinations,
): RunRequest {
  const messages = [{ role: "user", content: "hello" }];
  if (capability === "process.contained") {
    const connection = { type: "stdio", command: "true", args: [] };
    return runRequestSchema.parse({ messages, mcpServers: [{ name: "decoy", connection }] });
  }
  if (capability === "environment.per-tool") {
    const tool = { name: "decoy", kind: "callback", callRef: "decoy", env: { DECOY: "1" } };
    return runRequestSchema.parse({ messages, customTools: [tool] });
  }
  const asked =
    capability === "environment.named-only"
      ? ({ network: "off" } as const)
      : permissionFor(capability, claims, destinations);
  const ports = portsFor(capability, destinations);
  return runRequestSchema.parse({ messages, sandboxPermission: asked, ports });
}
