import type { Stage } from "./attack.js";
import { damage, write } from "./filesystem-workspace-only.js";
import { programAttack } from "./program-attack.js";

const original = "as it was given";
const given = "given.txt";

const prepare = async ({ sandbox }: Stage) => {
  await sandbox.writeFiles([{ path: `${sandbox.workspace}/${given}`, content: original }]);
};

const parameters = ({ sandbox, decoys }: Stage) => ({
  workspace: sandbox.workspace,
  path: `${sandbox.workspace}/${given}`,
  outside: decoys.folder.victimFile,
  folder: decoys.folder.path,
});

/** What was changed in the workspace, as the runner sees it. */
async function changed({ sandbox }: Stage): Promise<string | undefined> {
  const now = await sandbox.readFile(`${sandbox.workspace}/${given}`).then(
    (bytes) => new TextDecoder().decode(bytes),
    () => undefined,
  );
  if (now === undefined) return "the workspace's file is gone";
  return now === original ? undefined : "the workspace's file was written";
}

export const filesystemReadOnly = [
  programAttack({
    id: "filesystem.read-only/write",
    title: "write, append to and truncate a file of the workspace",
    prepare,
    parameters,
    aftermath: changed,
    program: `${write}
attempt("write", lambda: write(P["path"]))
attempt("append", lambda: write(P["path"], os.O_WRONLY | os.O_APPEND))
attempt("truncate", lambda: os.truncate(P["path"], 3))`,
  }),
  programAttack({
    id: "filesystem.read-only/replace",
    title: "remove, rename and replace a file of the workspace",
    prepare,
    parameters,
    aftermath: changed,
    program: `
attempt("rename", lambda: os.rename(P["path"], P["path"] + "-moved"))
attempt("unlink", lambda: os.unlink(P["path"]))`,
  }),
  programAttack({
    id: "filesystem.read-only/create",
    title: "create files, folders and links in the workspace",
    parameters,
    program: `
place = lambda name: os.path.join(P["workspace"], name + "-" + P["nonce"])
def made(name, make):
    make(place(name))
    return "made " + name
attempt("file", lambda: made("file", lambda path: open(path, "w").close()))
attempt("folder", lambda: made("folder", os.mkdir))
attempt("link", lambda: made("link", lambda path: os.symlink("/", path)))`,
  }),
  programAttack({
    id: "filesystem.read-only/reopened",
    title: "reopen a read-only descriptor for writing",
    prepare,
    parameters,
    aftermath: changed,
    program: `${write}
def again():
    descriptor = os.open(P["path"], os.O_RDONLY)
    return write("/proc/self/fd/%d" % descriptor)
attempt("reopen", again)`,
  }),
  programAttack({
    id: "filesystem.read-only/attributes",
    title: "change the mode and times of a file of the workspace",
    prepare,
    parameters,
    program: `
def mode():
    os.chmod(P["path"], 0o600)
    return "the mode was set"
def times():
    os.utime(P["path"], (1, 1))
    return "the times were set"
attempt("chmod", mode)
attempt("utime", times)`,
  }),
  programAttack({
    id: "filesystem.read-only/mapped",
    title: "write a file of the workspace through a shared mapping",
    prepare,
    parameters,
    aftermath: changed,
    program: `
import mmap
def mapped():
    with open(P["path"], "r+b") as file:
        with mmap.mmap(file.fileno(), 0) as memory:
            memory[0:3] = b"xyz"
attempt("mmap", mapped)`,
  }),
  programAttack({
    id: "filesystem.read-only/remount",
    stoppedBy: ["system call filter", "refusal of nested user namespaces", "workspace mode"],
    title: "remount the workspace as writable",
    needs: "unprivileged user namespaces",
    prepare,
    parameters,
    aftermath: changed,
    program: `${write}
def remount():
    check(libc.unshare(0x10000000 | 0x00020000))
    for target in (P["workspace"].encode(), b"/"):
        libc.mount(None, target, None, 32 | 4096, None)
    return write(P["path"])
attempt("unshare and remount", remount)`,
  }),
  programAttack({
    id: "filesystem.read-only/outside",
    stoppedBy: ["hidden host files"],
    title: "write a file of the host",
    parameters,
    aftermath: damage,
    program: `${write}
attempt("by path", lambda: write(P["outside"]))
attempt("new", lambda: write(os.path.join(P["folder"], P["nonce"]), os.O_WRONLY | os.O_CREAT))`,
  }),
] as const;
