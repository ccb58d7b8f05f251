import { chmod, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { untouched } from "../../decoys/decoys.js";
import type { Stage } from "../attack.js";
import { programAttack } from "../program-attack.js";

/** What was changed in the decoys' folder, as the host sees it; restored afterwards. */
export async function damage({ decoys }: Stage): Promise<string | undefined> {
  const { path, victimFile, secretFile } = decoys.folder;
  const known = new Set([victimFile, secretFile, decoys.unixPath].map((one) => one.slice(path.length + 1)));
  const present = await readdir(path);
  const added = present.filter((name) => !known.has(name));
  await Promise.all(added.map((name) => rm(join(path, name), { recursive: true, force: true })));
  const victim = present.includes(victimFile.slice(path.length + 1))
    ? await readFile(victimFile, "utf8")
    : undefined;
  if (victim !== untouched) {
    await writeFile(victimFile, untouched);
    // If it was recreated, its mode depends on the process's umask.
    await chmod(victimFile, 0o666);
  }
  if (victim === undefined) return "the victim was removed";
  if (victim !== untouched) return "the victim was written";
  return added.length > 0 ? `files were created next to the victim (${added.length})` : undefined;
}

const victim = ({ decoys }: Stage) => ({ path: decoys.folder.victimFile, folder: decoys.folder.path });

export const write = `
def write(path, flags=os.O_WRONLY):
    descriptor = os.open(path, flags, 0o666)
    os.write(descriptor, P["nonce"].encode())
    os.close(descriptor)
    return None  # The host says whether it arrived.
`;

export const outsideAttacks = [
  programAttack({
    id: "filesystem.workspace-only/anywhere",
    title: "create a file in a folder other than the workspace, a home or scratch",
    parameters: ({ sandbox, decoys }) => ({
      own: [sandbox.workspace, sandbox.home],
      folder: decoys.folder.path,
    }),
    // Created empty, and removed at once.
    program: `
own = [os.path.realpath(path) for path in P["own"] + [os.environ.get("HOME", "/tmp"), os.environ.get("TMPDIR", "/tmp")]]
shared = ["/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/proc", "/sys", "/run/lock", "/run/user"]
def outside(folder):
    real = os.path.realpath(folder)
    return not any(real == top or real.startswith(top + "/") for top in own + shared) or real.startswith(P["folder"])
def made(folder):
    path = os.path.join(folder, "made-" + P["nonce"])
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)
    return "made a file in " + folder
def folders():
    yield P["folder"]
    for top, names, _ in os.walk("/"):
        yield top
        if top.count("/") > 2 or not outside(top):
            names[:] = []
def anywhere():
    failure = None
    for folder in filter(outside, folders()):
        try:
            return made(folder)
        except OSError as error:
            failure = error
    raise failure
attempt("create", anywhere)`,
  }),
  programAttack({
    id: "filesystem.workspace-only/by-path",
    title: "write a file of the host by its path",
    parameters: victim,
    aftermath: damage,
    program: `${write}
attempt("open", lambda: write(P["path"]))
attempt("proc root", lambda: write("/proc/self/root" + P["path"]))
attempt("parents", lambda: write("../" * 40 + P["path"].lstrip("/")))`,
  }),
  programAttack({
    id: "filesystem.workspace-only/create",
    title: "create files, folders, links, sockets and pipes outside the workspace",
    parameters: victim,
    aftermath: damage,
    program: `${write}
place = lambda name: os.path.join(P["folder"], name + "-" + P["nonce"])
attempt("file", lambda: write(place("file"), os.O_WRONLY | os.O_CREAT))
attempt("folder", lambda: os.mkdir(place("folder")))
attempt("link", lambda: os.symlink("/", place("link")))
attempt("pipe", lambda: os.mkfifo(place("pipe")))
attempt("socket", lambda: socket.socket(socket.AF_UNIX).bind(place("s")[:100]))`,
  }),
  programAttack({
    id: "filesystem.workspace-only/remove",
    title: "remove, rename or exchange a file of the host",
    parameters: victim,
    aftermath: damage,
    program: `
attempt("rename out", lambda: os.rename(P["path"], P["path"] + "-moved"))
attempt("unlink", lambda: os.unlink(P["path"]))
def into():
    open("mine-" + P["nonce"], "w").close()
    os.rename("mine-" + P["nonce"], P["path"])
attempt("rename in", into)`,
  }),
  programAttack({
    id: "filesystem.workspace-only/symlink",
    title: "write a file of the host through a symbolic link in the workspace",
    parameters: victim,
    aftermath: damage,
    program: `${write}
def through(target, rest=""):
    link = "link-%d" % time.monotonic_ns()
    os.symlink(target, link)
    return write(link + rest)
attempt("file", lambda: through(P["path"]))
attempt("folder", lambda: through(P["folder"], "/" + os.path.basename(P["path"])))`,
  }),
  programAttack({
    id: "filesystem.workspace-only/hard-link",
    title: "write a file of the host through a hard link in the workspace",
    parameters: victim,
    aftermath: damage,
    program: `${write}
def linked():
    failure = None
    for folder in (os.getcwd(), P["folder"]):
        link = os.path.join(folder, "link-" + P["nonce"])
        try:
            os.link(P["path"], link)
            return write(link)
        except OSError as error:
            failure = error
    raise failure
attempt("link", linked)`,
  }),
  programAttack({
    id: "filesystem.workspace-only/other-roots",
    title: "write a file of the host through the roots of other processes",
    parameters: victim,
    aftermath: damage,
    program: `${write}
def anywhere():
    for place in glob.glob("/proc/[0-9]*/root") + glob.glob("/proc/[0-9]*/cwd"):
        for path in (place + P["path"], place + "/" + "../" * 20 + P["path"]):
            try:
                write(path)
            except OSError:
                continue
attempt("roots", anywhere)`,
  }),
] as const;
