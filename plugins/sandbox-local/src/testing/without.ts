import type { Capability } from "@ambit/core/plugin";
import type { Attack } from "@ambit/testkit";
import type { Mechanism } from "./weakened/index.js";

/** The mechanism that a jail of the local sandbox must lack for attacks on a capability to work. */
const byCapability: Readonly<Record<Capability, readonly Mechanism[]>> = {
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
};

const nested = ["system call filter", "refusal of nested user namespaces"] as const;

/** Attacks that another mechanism stops, or several do: then all of those are removed, and no other. */
const byAttack: Readonly<Record<string, readonly Mechanism[]>> = {
  "network.deny/unix-path": ["hidden host files"],
  "network.deny/vsock": ["system call filter"],
  "network.deny/vsock-foreign-call": ["system call filter"],
  "network.deny/io-uring": ["system call filter"],
  "network.deny/through-the-proxy": ["allowlist"],
  "network.allow-cidr/datagram": ["network namespace"],
  "network.allow-host/datagram": ["network namespace"],
  "network.allow-host/server-name": ["server name check"],
  "network.allow-host/host-header": ["host header check", "allowlist"],
  "filesystem.read-only/remount": [...nested, "workspace mode"],
  "filesystem.read-only/outside": ["hidden host files"],
  "filesystem.workspace-only/remount": [...nested, "hidden host files"],
  "filesystem.workspace-only/set-id": ["system call filter"],
  "filesystem.workspace-only/link-for-the-runner": ["no-follow file access"],
  "filesystem.workspace-only/exchange-under-the-runner": ["no-follow file access"],
  "filesystem.workspace-only/denied-write": ["path rules"],
  "filesystem.workspace-only/denied-replace": ["path rules"],
  "filesystem.workspace-only/denied-move-above": ["path rules"],
  "filesystem.workspace-only/denied-link": ["path rules"],
  "filesystem.workspace-only/denied-path-replaced": ["path rules", "hidden host files"],
  "filesystem.workspace-only/writable-path-replaced": ["path rules", "hidden host files"],
  "filesystem.workspace-only/exchange-under-a-launch": ["rules for all jails that live", "second bubblewrap"],
  "filesystem.none/outside": ["hidden host files"],
  "filesystem.host-hidden/own-mounts": [...nested, "hidden host files"],
  "filesystem.host-hidden/inherited-descriptors": ["closed descriptors"],
  "filesystem.host-hidden/another-session": ["session separation"],
  "filesystem.host-hidden/key-list": ["covered kernel tables"],
  "filesystem.host-hidden/link-for-the-runner": ["no-follow file access"],
  "process.contained/memory": ["pid namespace", "user namespace"],
  "process.contained/memory-call": ["pid namespace", "user namespace", "system call filter"],
  "process.contained/memory-change": ["pid namespace", "user namespace", "system call filter"],
  "process.contained/descriptor": ["pid namespace", "user namespace", "system call filter"],
  "process.contained/trace": ["pid namespace", "user namespace", "system call filter"],
  "process.contained/shared-segment": ["ipc namespace"],
  "process.contained/message-queue": ["ipc namespace"],
  "process.contained/keyring": ["system call filter"],
  "process.contained/own-user-namespace": [...nested],
  "process.contained/outlive-runner": ["exit with the runner"],
  "environment.named-only/init": ["cleared environment", "guard of the first process"],
  "environment.per-tool/arguments": ["pid namespace"],
  "environment.per-tool/agent-reads-tool": ["pid namespace"],
  "environment.per-tool/tool-reads-agent": ["pid namespace"],
  "environment.per-tool/supervisor": ["network namespace"],
  "environment.per-tool/scratch": ["private scratch"],
  "environment.per-tool/leftovers": ["private scratch"],
  "secrets.hidden/files": ["hidden host files"],
  "secrets.hidden/processes": ["pid namespace", "user namespace"],
  "environment.per-tool/trace": ["pid namespace", "user namespace", "system call filter"],
};

/** Mechanisms that bubblewrap always applies: only this attack has a plain process as its control. */
const wholeJail = new Set<string>(["filesystem.host-hidden/set-user-id"]);

/** The mechanisms to remove for an attack to work; `bare` if none can be removed alone. */
export function withoutFor({
  id,
  capability,
}: Pick<Attack, "id" | "capability">): readonly Mechanism[] | "bare" {
  if (wholeJail.has(id)) return "bare";
  return byAttack[id] ?? byCapability[capability];
}

/** Every attack named above, for a test that they all exist. */
export const namedAttacks: readonly string[] = [...Object.keys(byAttack), ...wholeJail];
