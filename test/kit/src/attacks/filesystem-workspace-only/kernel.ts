import { programAttack } from "../program-attack.js";
import { damage, write } from "./outside.js";

export const kernelAttacks = [
  programAttack({
    id: "filesystem.workspace-only/remount",
    title: "make everything writable again by mounting anew",
    needs: "unprivileged user namespaces",
    parameters: ({ decoys }) => ({ path: decoys.folder.victimFile, folder: decoys.folder.path }),
    aftermath: damage,
    // In a mount namespace of its own always: the host's own mounts are never changed, not even unguarded.
    program: `${write}
def remount():
    check(libc.unshare(0x10000000 | 0x00020000))
    for target in (b"/", P["folder"].encode()):
        libc.mount(None, target, None, 32 | 4096, None)
    return write(P["path"])
attempt("unshare and remount", remount)`,
  }),
  programAttack({
    id: "filesystem.workspace-only/kernel-settings",
    title: "open a setting of the host's kernel for writing",
    needs: "a user who may set it",
    asRoot: true,
    // Opened and closed: nothing is ever written, whoever runs this.
    program: `
def opened(path):
    os.close(os.open(path, os.O_WRONLY))
    return "opened " + path + " for writing"
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
             "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/proc/sys/fs/binfmt_misc/register"):
    attempt(path, lambda: opened(path))
for path in glob.glob("/sys/fs/cgroup/*/release_agent") + glob.glob("/sys/fs/cgroup/cgroup.procs"):
    attempt(path, lambda: opened(path))
if os.path.exists("/sys/kernel/uevent_helper"):
    attempt("uevent", lambda: opened("/sys/kernel/uevent_helper"))`,
  }),
  programAttack({
    id: "filesystem.workspace-only/runtime-files",
    title: "open the host's programs and settings for writing",
    needs: "a user who may write them",
    asRoot: true,
    // Opened and closed: nothing is ever written, whoever runs this.
    program: `
def opened(path):
    os.close(os.open(path, os.O_WRONLY))
    return "opened " + path + " for writing"
for path in ("/usr/bin/env", "/usr/lib/os-release", "/etc/passwd", "/etc/hosts", "/etc/ld.so.cache"):
    attempt(path, lambda: opened(path))`,
  }),
] as const;
