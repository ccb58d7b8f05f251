import type { Stage } from "./attack.js";
import { damage, write } from "./filesystem-workspace-only.js";
import { programAttack } from "./program-attack.js";

const name = "planted-in-the-workspace.txt";

/** The runner's files may be in a workspace that isn't shown inside, or the runner has none either. */
const prepare = async ({ sandbox, decoys }: Stage) => {
  const path = `${sandbox.workspace}/${name}`;
  await sandbox.writeFiles([{ path, content: decoys.secret }]).catch(() => undefined);
};

const parameters = ({ sandbox, decoys }: Stage) => ({
  workspace: sandbox.workspace,
  path: `${sandbox.workspace}/${name}`,
  name,
  outside: decoys.folder.victimFile,
});
/** The default working folder, the workspace, doesn't exist inside. */
const options = { cwd: "/" } as const;

export const filesystemNone = [
  programAttack({
    id: "filesystem.none/read",
    title: "read a file of the workspace",
    prepare,
    parameters,
    options,
    program: `
attempt("open", lambda: leaks(content(P["path"])))
attempt("roots", lambda: each([place + P["path"] for place in glob.glob("/proc/[0-9]*/root")], content))`,
  }),
  programAttack({
    id: "filesystem.none/list",
    title: "find the workspace's files anywhere",
    prepare,
    parameters,
    options,
    program: `
attempt("list", lambda: P["name"] in os.listdir(P["workspace"]) and "listed")
def search():
    entries = 0
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders[:] = [one for one in folders if one not in ("proc", "sys", "usr", "dev", "lib", "lib64")]
        if P["name"] in files:
            return os.path.join(folder, P["name"])
        entries += len(files)
        if entries > 200000:
            break
    return None
attempt("walk", search)`,
  }),
  programAttack({
    id: "filesystem.none/write",
    title: "put a file into the workspace",
    prepare,
    parameters,
    options,
    aftermath: async ({ sandbox, decoys }) => {
      const there = await sandbox.readFile(`${sandbox.workspace}/${name}`).then(
        (bytes) => new TextDecoder().decode(bytes),
        () => decoys.secret, // It doesn't exist for the runner either, so nothing was written.
      );
      return there === decoys.secret ? undefined : "the workspace's file was written";
    },
    program: `${write}
attempt("write", lambda: write(P["path"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC))`,
  }),
  programAttack({
    id: "filesystem.none/outside",
    stoppedBy: ["hidden host files"],
    title: "write a file of the host",
    parameters,
    options,
    aftermath: damage,
    program: `${write}
attempt("by path", lambda: write(P["outside"]))`,
  }),
] as const;
