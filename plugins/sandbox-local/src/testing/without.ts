import type { Capability } from "@ambit/core/plugin";
import type { Attack } from "@ambit/testkit";
import type { Mechanism } from "./weakened/index.js";

/** What a jail of the local sandbox lacks where attacks on a capability must work. */
const byCapability: Readonly<Record<Capability, readonly Mechanism[]>> = {
  "network.deny": ["network namespace"],
  "network.allow-cidr": ["allowlist"],
  "network.allow-host": ["allowlist"],
  "filesystem.read-only": ["mode of the workspace"],
  "filesystem.workspace-only": ["hidden host files"],
  "filesystem.none": ["mode of the workspace"],
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

/** Attacks that another mechanism stops, or more than one does: then all of those are taken out, and no other. */
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
  "filesystem.read-only/remount": [...nested, "mode of the workspace"],
  "filesystem.read-only/outside": ["hidden host files"],
  "filesystem.workspace-only/remount": [...nested, "hidden host files"],
  "filesystem.workspace-only/set-id": ["system call filter"],
  "filesystem.workspace-only/link-for-the-runner": ["files opened through no link"],
  "filesystem.workspace-only/exchange-under-the-runner": ["files opened through no link"],
  "filesystem.workspace-only/denied-write": ["path rules"],
  "filesystem.workspace-only/denied-replace": ["path rules"],
  "filesystem.workspace-only/denied-move-above": ["path rules"],
  "filesystem.workspace-only/denied-link": ["path rules"],
  "filesystem.workspace-only/denied-path-replaced": ["path rules", "hidden host files"],
  "filesystem.workspace-only/writable-path-replaced": ["path rules", "hidden host files"],
  "filesystem.none/outside": ["hidden host files"],
  "filesystem.host-hidden/own-mounts": [...nested, "hidden host files"],
  "filesystem.host-hidden/inherited-descriptors": ["closed descriptors"],
  "filesystem.host-hidden/another-session": ["sessions kept apart"],
  "filesystem.host-hidden/key-list": ["covered kernel tables"],
  "filesystem.host-hidden/link-for-the-runner": ["files opened through no link"],
  "process.contained/memory": ["pid namespace", "user namespace"],
  "process.contained/memory-call": ["pid namespace", "user namespace", "system call filter"],
  "process.contained/memory-change": ["pid namespace", "user namespace", "system call filter"],
  "process.contained/descriptor": ["pid namespace", "user namespace", "system call filter"],
  "process.contained/trace": ["pid namespace", "user namespace", "system call filter"],
  "process.contained/shared-segment": ["ipc namespace"],
  "process.contained/message-queue": ["ipc namespace"],
  "process.contained/keyring": ["system call filter"],
  "process.contained/own-user-namespace": [...nested],
  "process.contained/outlive-runner": ["end with the runner"],
  "environment.named-only/init": ["cleared environment", "guard of the first process"],
  "environment.per-tool/arguments": ["pid namespace"],
  "environment.per-tool/agent-reads-tool": ["pid namespace"],
  "environment.per-tool/tool-reads-agent": ["pid namespace"],
  "environment.per-tool/supervisor": ["network namespace"],
  "environment.per-tool/scratch": ["scratch of its own"],
  "environment.per-tool/leftovers": ["scratch of its own"],
  "secrets.hidden/files": ["hidden host files"],
  "secrets.hidden/processes": ["pid namespace", "user namespace"],
  "environment.per-tool/trace": ["pid namespace", "user namespace", "system call filter"],
};

/** What a jail can't be had without, bubblewrap always setting it: this attack alone meets a plain process. */
const wholeJail = new Set<string>(["filesystem.host-hidden/set-user-id"]);

/** The mechanisms without which an attack must work; `bare` where none can be taken out alone. */
export function withoutFor({
  id,
  capability,
}: Pick<Attack, "id" | "capability">): readonly Mechanism[] | "bare" {
  if (wholeJail.has(id)) return "bare";
  return byAttack[id] ?? byCapability[capability];
}

/** Every attack's name that is spelled out above, for a test that there is one. */
export const namedAttacks: readonly string[] = [...Object.keys(byAttack), ...wholeJail];
