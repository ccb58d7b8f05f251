import { programAttack } from "../program-attack.js";
import { damage, write } from "./outside.js";

export const kernelAttacks = [
  programAttack({
    id: "filesystem.workspace-only/set-id",
    stoppedBy: ["system call filter"],
    title: "leave a set-user-ID program in the workspace",
    parameters: ({ sandbox }) => ({ folder: sandbox.workspace }),
    // Each file is empty and removed at once.
    program: `
N = {
    "x86_64": {"chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "creat": 85, "open": 2, "openat": 257,
               "mknod": 133, "mknodat": 259, "openat2": 437},
    "aarch64": {"fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "openat": 56, "mknodat": 33, "openat2": 437},
}[os.uname().machine]
HERE, CREATE, TEMPORARY, REGULAR = -100, os.O_CREAT | os.O_WRONLY, os.O_TMPFILE | os.O_WRONLY, stat.S_IFREG
def left(name, mode, given):
    path = os.path.join(P["folder"], "set-id-%d" % time.monotonic_ns())
    arguments = [path.encode() if one == "path" else P["folder"].encode() if one == "folder" else one for one in given]
    descriptor = None
    try:
        if name.endswith("chmod") or name.startswith("fchmodat"):
            descriptor = os.open(path, CREATE, 0o755)
            arguments = [descriptor if one == "descriptor" else one for one in arguments]
        result = syscall(N[name], *arguments)
        if name.startswith(("creat", "open")):
            descriptor = result
        found = os.fstat(descriptor) if descriptor is not None else os.stat(path)
        return found.st_mode & mode and "%s made a file of mode %o" % (name, found.st_mode & 0o7777)
    finally:
        if descriptor is not None:
            os.close(descriptor)
        if os.path.lexists(path):
            os.unlink(path)
for bit in (0o4000, 0o2000):
    mode = bit | 0o755
    how = struct.pack("QQQ", CREATE, mode, 0)
    calls = [("chmod", "path", mode), ("fchmod", "descriptor", mode), ("fchmodat", HERE, "path", mode),
             ("fchmodat2", HERE, "path", mode, 0), ("creat", "path", mode), ("open", "path", CREATE, mode),
             ("open", "folder", TEMPORARY, mode), ("openat", HERE, "path", CREATE, mode),
             ("openat", HERE, "folder", TEMPORARY, mode), ("mknod", "path", REGULAR | mode, 0),
             ("mknodat", HERE, "path", REGULAR | mode, 0), ("openat2", HERE, "path", how, len(how))]
    for name, *given in calls:
        if name in N:
            attempt("%s %o" % (name, bit), lambda: left(name, bit, given))`,
  }),
  programAttack({
    id: "filesystem.workspace-only/remount",
    stoppedBy: ["system call filter", "refusal of nested user namespaces", "hidden host files"],
    title: "remount everything as writable",
    needs: "unprivileged user namespaces",
    parameters: ({ decoys }) => ({ path: decoys.folder.victimFile, folder: decoys.folder.path }),
    aftermath: damage,
    // Always in a new mount namespace: the host's own mounts are never changed, not even unguarded.
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
    title: "open a kernel setting of the host for writing",
    needs: "a user who may set it",
    asRoot: true,
    // Only opened and closed: nothing is ever written, whichever user runs this.
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
    // Only opened and closed: nothing is ever written, whichever user runs this.
    program: `
def opened(path):
    os.close(os.open(path, os.O_WRONLY))
    return "opened " + path + " for writing"
for path in ("/usr/bin/env", "/usr/lib/os-release", "/etc/passwd", "/etc/hosts", "/etc/ld.so.cache"):
    attempt(path, lambda: opened(path))`,
  }),
] as const;
