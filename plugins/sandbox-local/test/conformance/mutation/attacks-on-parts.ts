import type { RemovableMechanism } from "../../weakened/jails/index.ts";

/** The attack that works without a part, and the other mechanisms that also have to be removed for it. */
export interface AttackOnPart {
  readonly attack: string;
  /** Removed from both jails, the one with the part and the one without. */
  readonly alsoRemoved: readonly RemovableMechanism[];
  /** Both jails run as the runner's own user. */
  readonly asRoot?: boolean;
}

const alone = (attack: string): AttackOnPart => ({ attack, alsoRemoved: [] });
const onHostProcess = (attack: string): AttackOnPart => ({
  attack: `process.contained/${attack}`,
  alsoRemoved: ["pid namespace", "user namespace"],
});
const nested = {
  attack: "process.contained/own-user-namespace",
  alsoRemoved: ["refusal of nested user namespaces"],
} as const satisfies AttackOnPart;
const setId = alone("filesystem.workspace-only/set-id");

/** By the name of a part of bubblewrap's command line. */
export const attacksOnParts: Readonly<Record<string, AttackOnPart>> = {
  "--unshare-net": alone("network.deny/tcp"),
  "--unshare-ipc": alone("process.contained/shared-segment"),
  "--disable-userns": { attack: nested.attack, alsoRemoved: ["system call filter"] },
  "read-only /": alone("filesystem.workspace-only/anywhere"),
  "read-only /dev": alone("filesystem.workspace-only/anywhere"),
  "read-only /usr": { attack: "filesystem.workspace-only/runtime-files", alsoRemoved: [], asRoot: true },
  "read-only /etc": { attack: "filesystem.workspace-only/runtime-files", alsoRemoved: [], asRoot: true },
  "read-only /workspace": alone("filesystem.read-only/write"),
  "cover of /proc/keys": alone("filesystem.host-hidden/key-list"),
  "--seccomp": alone("network.deny/io-uring"),
};

/** By the name of a part of the system call filter. */
export const attacksOnCalls: Readonly<Record<string, AttackOnPart>> = {
  ...Object.fromEntries(
    [
      "chmod",
      "fchmod",
      "creat",
      "mknod",
      "fchmodat",
      "fchmodat2",
      "mknodat",
      "open",
      "openat",
      "openat2",
    ].map((call) => [call, setId]),
  ),
  "chmod, fchmod, creat, mknod: 0x400": setId,
  "chmod, fchmod, creat, mknod: 0x800": setId,
  "fchmodat, fchmodat2, mknodat: 0x400": setId,
  "fchmodat, fchmodat2, mknodat: 0x800": setId,
  "open: 0x40": setId,
  "open: 0x400000": setId,
  "open: 0x400": setId,
  "open: 0x800": setId,
  "openat: 0x40": setId,
  "openat: 0x400000": setId,
  "openat: 0x400": setId,
  "openat: 0x800": setId,
  ptrace: onHostProcess("trace"),
  process_vm_readv: onHostProcess("memory-call"),
  process_vm_writev: onHostProcess("memory-change"),
  pidfd_getfd: onHostProcess("descriptor"),
  keyctl: alone("process.contained/keyring"),
  socket: alone("network.deny/vsock"),
  io_uring_setup: alone("network.deny/io-uring"),
  unshare: nested,
  "unshare: 0x10000000": nested,
  clone: nested,
  "clone: 0x10000000": nested,
  clone3: nested,
  "calls of another architecture": alone("network.deny/vsock-foreign-call"),
};
