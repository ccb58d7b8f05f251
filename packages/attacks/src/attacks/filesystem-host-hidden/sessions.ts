import { freshNonce } from "../../decoys/nonce.js";
import { runProgram } from "../../programs/run-program.js";
import { type Attack, blocked, reached } from "../attack.js";
import { outcomeOf, programAttack } from "../program-attack.js";

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
