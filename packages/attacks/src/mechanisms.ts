import type { Capability } from "@ambit/core/plugin";

/**
 * The parts of a guard that attempts try, and what they enforce. A new one needs an attack in the catalogue that it stops, and
 * a place in `probedBy`: without them it doesn't pass the tests, or doesn't compile.
 */
export const mechanisms = {
  "network namespace": ["network.deny"],
  allowlist: ["network.allow-cidr", "network.allow-host"],
  "server name check": ["network.allow-host"],
  "host header check": ["network.allow-host"],
  "hidden host files": ["filesystem.host-hidden", "filesystem.workspace-only"],
  "covered kernel tables": ["filesystem.host-hidden"],
  "workspace mode": ["filesystem.read-only", "filesystem.none"],
  "path rules": ["filesystem.workspace-only"],
  "rules for all jails that live": ["filesystem.workspace-only"],
  "second bubblewrap": ["filesystem.workspace-only"],
  "no-follow file access": ["filesystem.workspace-only", "filesystem.host-hidden"],
  "session separation": ["filesystem.host-hidden"],
  "closed descriptors": ["filesystem.host-hidden"],
  "no new privileges": ["filesystem.host-hidden"],
  "pid namespace": ["process.contained", "environment.per-tool"],
  "ipc namespace": ["process.contained"],
  "user namespace": ["process.contained", "environment.per-tool"],
  "refusal of nested user namespaces": ["process.contained"],
  "system call filter": ["network.deny", "process.contained", "filesystem.workspace-only"],
  "guard of the first process": ["environment.named-only"],
  "exit with the runner": ["process.contained"],
  "private scratch": ["environment.per-tool"],
  "cleared environment": ["environment.named-only", "secrets.hidden"],
  "credential broker": ["secrets.hidden"],
  limits: ["resources.memory", "resources.processes", "resources.cpu", "resources.disk"],
  "inbound port list": ["inbound.ports"],
  "inbound relay": ["inbound.ports"],
} as const satisfies Readonly<Record<string, readonly [Capability, ...Capability[]]>>;

export type Mechanism = keyof typeof mechanisms;

export const mechanismNames: readonly Mechanism[] = Object.keys(mechanisms).filter(isMechanism);

function isMechanism(name: string): name is Mechanism {
  return Object.hasOwn(mechanisms, name);
}

/** What stops attacks on a capability, unless an attack names other mechanisms. */
const usual: Readonly<Record<Capability, readonly [Mechanism, ...Mechanism[]]>> = {
  "network.deny": ["network namespace"],
  "network.allow-cidr": ["allowlist"],
  "network.allow-host": ["allowlist"],
  "filesystem.read-only": ["workspace mode"],
  "filesystem.workspace-only": ["hidden host files"],
  "filesystem.none": ["workspace mode"],
  "filesystem.host-hidden": ["hidden host files"],
  "process.contained": ["pid namespace"],
  "environment.named-only": ["cleared environment"],
  "environment.per-tool": ["pid namespace", "user namespace"],
  "resources.memory": ["limits"],
  "resources.processes": ["limits"],
  "resources.cpu": ["limits"],
  "resources.disk": ["limits"],
  "secrets.hidden": ["cleared environment"],
  "inbound.ports": ["inbound relay"],
};

/** The mechanisms without all of which an attack works. */
export function mechanismsAgainst(attack: {
  readonly capability: Capability;
  readonly stoppedBy?: readonly Mechanism[] | undefined;
}): readonly Mechanism[] {
  return attack.stoppedBy ?? usual[attack.capability];
}
