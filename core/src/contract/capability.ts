import { z } from "zod";

/** What an actor's effects can reach, or by which it can be reached (`inbound`). A capability belongs to the domain its name starts with. */
export const domains = [
  "network",
  "filesystem",
  "process",
  "environment",
  "resources",
  "secrets",
  "inbound",
] as const;
export type Domain = (typeof domains)[number];

/**
 * The vocabulary of promises. Each is a sentence in the negative that a test can break.
 * Plugins may claim only these: a word outside this table has no attack, so nothing could prove it.
 */
export const promises = {
  "network.deny":
    "No outbound connection succeeds: TCP, UDP, ICMP, raw, DNS, IPv6, vsock, host loopback, host unix and abstract sockets; only the run's own mediated channels answer.",
  "network.allow-cidr":
    "Connections succeed only to addresses in the listed ranges. A port given with a range binds too.",
  "network.allow-host":
    "Connections succeed only to the listed names (exact, or *.suffix). A name that resolves to a private, loopback, link-local or metadata address fails, unless that address is in a listed range. It binds the connection's name, not the tenant behind it: domain fronting inside an allowed TLS host is not stopped.",
  "filesystem.read-only": "No write outside the run's scratch space succeeds, the workspace included.",
  "filesystem.workspace-only": "No write outside the workspace and scratch succeeds.",
  "filesystem.none": "The workspace isn't there: scratch only.",
  "filesystem.host-hidden":
    "Host files other than the runtime's (homes, keys, /etc/shadow, other sessions) can't be read.",
  "process.contained":
    "The run sees and signals no process of the host or of another session, and none outlives close().",
  "environment.named-only": "Only variables named for that process are visible to it.",
  "environment.per-tool":
    "A tool's process can't read another's environment, arguments, memory or scratch, nor the agent its.",
  "resources.memory": "No more memory than the limit can be used; other sessions keep theirs.",
  "resources.processes":
    "No more processes than the limit can exist; other sessions keep theirs. All of a session's count, including threads and the sandbox's own.",
  "resources.cpu": "No more processor time than the limit can be used; other sessions keep theirs.",
  "resources.disk": "No more workspace disk than the limit can be used; other sessions keep theirs.",
  "secrets.hidden":
    "No credential of credentials, modelConnection, toolCallback, HTTP MCP servers or telemetry can be read in the sandbox: environment, files, processes, traffic.",
  "inbound.ports":
    "The runner's connections come in to the listed ports only: to no other port, no other session and nothing of the host. They end with the session.",
} as const satisfies Record<`${Domain}.${string}`, string>;

export type Capability = keyof typeof promises;

export const capabilities: readonly Capability[] = Object.freeze(Object.keys(promises).filter(isCapability));

export const capabilitySchema = z.enum(capabilities);

export function isCapability(name: string): name is Capability {
  return Object.hasOwn(promises, name);
}

export function domainOf(capability: Capability): Domain {
  return domainByCapability[capability];
}

const domainByCapability: Readonly<Record<Capability, Domain>> = {
  "network.deny": "network",
  "network.allow-cidr": "network",
  "network.allow-host": "network",
  "filesystem.read-only": "filesystem",
  "filesystem.workspace-only": "filesystem",
  "filesystem.none": "filesystem",
  "filesystem.host-hidden": "filesystem",
  "process.contained": "process",
  "environment.named-only": "environment",
  "environment.per-tool": "environment",
  "resources.memory": "resources",
  "resources.processes": "resources",
  "resources.cpu": "resources",
  "resources.disk": "resources",
  "secrets.hidden": "secrets",
  "inbound.ports": "inbound",
};
