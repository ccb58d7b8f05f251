import { type Boundary, isRestricted } from "../boundary.js";
import type { Capability, RunRequest } from "../contract/index.js";

/** A capability that the run needs, and the reason for it. */
export interface Requirement {
  readonly capability: Capability;
  /** Completes "required because …". */
  readonly because: string;
  /** The tool or MCP server that needs it. Absent: the boundary does. */
  readonly subject?: string;
}

/** A request with its boundary, and every capability that the two require: each is derived once. */
export interface BoundedRequest {
  readonly request: RunRequest;
  readonly boundary: Boundary;
  readonly required: readonly Requirement[];
}

/** @param boundary the request's boundary, as `normaliseBoundary` returns it. */
export function boundedRequest(request: RunRequest, boundary: Boundary): BoundedRequest {
  return { request, boundary, required: requirementsOf(boundary, request) };
}

/** Every capability that the run requires, each with the first reason for it. Pure. */
export function requirementsOf(boundary: Boundary, request: RunRequest): readonly Requirement[] {
  const first = new Map<Capability, Requirement>();
  for (const requirement of [...ofBoundary(boundary), ...ofTools(request), ...ofMcpServers(request)]) {
    if (!first.has(requirement.capability)) first.set(requirement.capability, requirement);
  }
  return [...first.values()];
}

/** The capabilities that a boundary requires of everything that acts in it. Pure. */
export function ofBoundary(boundary: Boundary): readonly Requirement[] {
  const all = [
    ...ofNetwork(boundary),
    ...ofFilesystem(boundary),
    ...ofResources(boundary),
    ...ofSecrets(boundary),
    ...ofInbound(boundary),
  ];
  if (isRestricted(boundary)) {
    const because = "every boundary needs it";
    all.push({ capability: "process.contained", because }, { capability: "environment.named-only", because });
  }
  return all;
}

function ofNetwork({ network }: Boundary): Requirement[] {
  if (network.mode === "on") return [];
  if (network.mode === "off")
    return [{ capability: "network.deny", because: "sandboxPermission.network allows nothing" }];
  const because = "sandboxPermission.network.allowlist lists";
  const requirements: Requirement[] = [];
  if (network.rules.some((rule) => rule.kind === "host")) {
    requirements.push({ capability: "network.allow-host", because: `${because} a name` });
  }
  if (network.rules.some((rule) => rule.kind === "range")) {
    requirements.push({ capability: "network.allow-cidr", because: `${because} addresses` });
  }
  return requirements;
}

const capabilityOfFilesystem = {
  workspace: "filesystem.workspace-only",
  readonly: "filesystem.read-only",
  off: "filesystem.none",
} as const;

function ofFilesystem({ filesystem }: Boundary): Requirement[] {
  if (filesystem.mode === "on") return [];
  const because = `sandboxPermission.filesystem is "${filesystem.mode}"`;
  return [
    { capability: capabilityOfFilesystem[filesystem.mode], because },
    { capability: "filesystem.host-hidden", because },
  ];
}

const capabilityOfResource = {
  memoryMb: "resources.memory",
  processes: "resources.processes",
  cpus: "resources.cpu",
  diskMb: "resources.disk",
} as const;

function ofResources({ resources }: Boundary): Requirement[] {
  const names = ["memoryMb", "processes", "cpus", "diskMb"] as const;
  return names
    .filter((name) => resources[name] !== undefined)
    .map((name) => ({
      capability: capabilityOfResource[name],
      because: `sandboxPermission.resources.${name} is set`,
    }));
}

function ofSecrets({ secrets }: Boundary): Requirement[] {
  return secrets === "hidden"
    ? [{ capability: "secrets.hidden", because: 'sandboxPermission.secrets is "hidden"' }]
    : [];
}

function ofInbound({ inbound }: Boundary): Requirement[] {
  return inbound === undefined ? [] : [{ capability: "inbound.ports", because: "the request has ports" }];
}

/** A tool with its own environment must not share it, even without a boundary. */
function ofTools(request: RunRequest): Requirement[] {
  const bringer = request.customTools.find((tool) => hasEntries(tool.env));
  if (bringer === undefined) return [];
  const because = `tool '${bringer.name}' has its own environment`;
  return [{ capability: "environment.per-tool", because, subject: bringer.name }];
}

function ofMcpServers(request: RunRequest): Requirement[] {
  const requirements: Requirement[] = [];
  for (const { name, connection } of request.mcpServers) {
    if (connection.type !== "stdio") continue;
    requirements.push({
      capability: "process.contained",
      because: "stdio MCP servers need a sandbox that confines processes",
      subject: name,
    });
    if (hasEntries(connection.env)) {
      const because = `MCP server '${name}' has its own environment`;
      requirements.push({ capability: "environment.per-tool", because, subject: name });
    }
  }
  return requirements;
}

function hasEntries(record: Readonly<Record<string, string>> | undefined): boolean {
  return record !== undefined && Object.keys(record).length > 0;
}
