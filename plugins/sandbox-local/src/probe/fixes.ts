/** The fix for a jail that can't be opened, by bubblewrap's message. The first match applies. */
import { messageOf } from "@ambit/core/plugin";

const containerFlags =
  "--security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined";

const fixes: readonly (readonly [words: RegExp, fix: string])[] = [
  [/bubblewrap isn't installed/, "apt install bubblewrap"],
  [/has no namespaces/, "run Ambit on Linux, or name a sandbox that doesn't need this host"],
  [
    /setting up uid map|RTM_NEWADDR/,
    "allow bwrap user namespaces in AppArmor (kernel.apparmor_restrict_unprivileged_userns): install a profile with `userns` for /usr/bin/bwrap",
  ],
  [/Can't mount proc|mount proc/, "in Docker add --security-opt systempaths=unconfined"],
  [
    /No permissions to create (?:a )?new namespace|Creating new namespace failed|pivot_root|make \/ slave/,
    `in Docker add ${containerFlags}; elsewhere allow user namespaces (kernel.unprivileged_userns_clone=1, user.max_user_namespaces > 0)`,
  ],
  [
    // Root's own program, for a session whose files lie where only root reaches them.
    /unshare: unshare failed/,
    `in Docker add --cap-add SYS_ADMIN ${containerFlags}; elsewhere give root CAP_SYS_ADMIN`,
  ],
  [/userIds.records/, "set sandbox-local's userIds.records to a folder that all runners of this host share"],
  [/Programs can't be started from/, "set sandbox-local's dataFolder to a file system without noexec"],
  [/can be changed by its payload/, "sysctl fs.suid_dumpable=0"],
  [
    /can't be reached by a session's own user|can't be used/,
    "set sandbox-local's dataFolder to a folder that other users can reach",
  ],
  [
    /disk limit can't be set/,
    "run Ambit as root on a host with loop devices and mkfs.ext4 (apt install e2fsprogs); in a container they are rarely allowed: limit what the tools write, or name a sandbox with its own disk",
  ],
  [
    /limit can't be set|has no \w+ cgroups/,
    "run Ambit as root, or with delegated cgroups (systemd: Delegate=yes, DelegateSubgroup=runner)",
  ],
  [/user ids/, "set sandbox-local's userIds to a range that nothing else uses"],
  [
    /`readOnlyMounts`/,
    "name in sandbox-local's readOnlyMounts what is there, and let other users read it (chmod -R o+rX)",
  ],
  [/relay doesn't listen/, "raise the runner's own limits of processes and memory"],
];

export function fixFor(error: unknown): string {
  const reason = messageOf(error);
  const [, option] = /[Uu]nknown option (--[\w-]+)/.exec(reason) ?? [];
  if (option !== undefined) return `install a newer bubblewrap: this one lacks ${option}`;
  const [, closed] = /can't be read by a session's own user: (.+) has the mode/.exec(reason) ?? [];
  if (closed !== undefined) return `chmod -R go+rX ${closed}`;
  const known = fixes.find(([words]) => words.test(reason));
  return known?.[1] ?? "mend on this host what the reason names, or name another sandbox";
}
