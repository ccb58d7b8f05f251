import { messageOf } from "@ambit/core/plugin";
import { type ProgramOptions, runProgram } from "../../programs/run-program.js";
import { type Attack, type AttackOutcome, blocked, reached, type Stage } from "../attack.js";
import { outcomeOf } from "../program-attack.js";
import { damage } from "./outside.js";

const denied = ".git/hooks/pre-commit";
const original = "the owner's own";

/** Denied paths within the workspace. */
export const listAttacks = [
  deniedFile("write", "write a denied file", "write"),
  deniedFile("replace", "remove or replace a denied file", "replace"),
  deniedFile("move-above", "move a parent folder of a denied file away and recreate it", "move"),
  deniedFile("link", "write a denied file through a hard link next to it", "link"),
  listedPathReplaced("denied"),
  listedPathReplaced("writable"),
] as const;

function deniedFile(slug: string, title: string, action: string): Attack {
  return {
    id: `filesystem.workspace-only/denied-${slug}`,
    stoppedBy: ["path rules"],
    capability: "filesystem.workspace-only",
    title,
    perform: async (stage) => {
      const sandbox = await stage.openAnother({
        filesystem: { mode: "workspace", denied: [denied.split("/").slice(0, 2).join("/")] },
      });
      const path = `${sandbox.workspace}/${denied}`;
      await sandbox.writeFiles([{ path, content: original }]);
      const ran = outcomeOf(
        await runProgram(sandbox, `${changes}\nattempt("${action}", ${action})`, { path }),
      );
      const now = await contentOf(sandbox, path);
      if (now !== original) return reached(`it now holds: ${now.slice(0, 60)}`);
      return ran.result === "not-run" ? ran : blocked(ran.detail);
    },
  };
}

async function contentOf(sandbox: Stage["sandbox"], path: string): Promise<string> {
  return sandbox.readFile(path).then(
    (bytes) => new TextDecoder().decode(bytes),
    (error: unknown) => `nothing (${messageOf(error)})`,
  );
}

const changes = `
path = P["path"]
folder = os.path.dirname(path)
above = os.path.dirname(folder)
def put(where):
    with open(where, "w") as file:
        file.write("changed " + P.get("nonce", ""))
def write():
    put(path)
def replace():
    os.unlink(path)
    put(path)
def move():
    os.rename(above, above + "-old")
    os.makedirs(folder)
    put(path)
def link():
    os.link(path, os.path.join(os.path.dirname(above), "beside"))
    put(os.path.join(os.path.dirname(above), "beside"))
`;

/**
 * A listed path is mounted again for each process: between two of them its folder becomes a link to the host. A backend
 * that mounts by name exposes the link's target.
 */
function listedPathReplaced(list: "denied" | "writable"): Attack {
  return {
    id: `filesystem.workspace-only/${list}-path-replaced`,
    stoppedBy: ["path rules", "hidden host files"],
    capability: "filesystem.workspace-only",
    title: `replace a folder above a ${list} path by a link to the host between two processes`,
    perform: async (stage) => {
      const { decoys, openAnother } = stage;
      const name = decoys.folder.victimFile.slice(decoys.folder.path.length + 1);
      const lists =
        list === "denied" ? { denied: [`area/spot/${name}`] } : { writable: ["area", `area/spot/${name}`] };
      const sandbox = await openAnother({ filesystem: { mode: "workspace", ...lists } });
      const parameters = {
        area: `${sandbox.workspace}/area`,
        spot: `${sandbox.workspace}/area/spot`,
        name,
        target: decoys.folder.path,
        secret: decoys.folder.secretFile,
      };
      await sandbox.writeFiles([{ path: `${parameters.area}/kept.txt`, content: "the run's own" }]);
      const planted = outcomeOf(await runProgram(sandbox, plantLink, parameters));
      if (planted.result === "not-run") return planted;
      return enter(stage, sandbox, parameters);
    },
  };
}

async function enter(
  stage: Stage,
  sandbox: Stage["sandbox"],
  parameters: object,
  options?: ProgramOptions,
): Promise<AttackOutcome> {
  try {
    const ran = outcomeOf(await runProgram(sandbox, throughLink, parameters, options));
    const happened = await damage(stage);
    return happened === undefined ? ran : reached(happened);
  } catch (error) {
    // Refusing to start a process because of a manipulated path also counts as blocked.
    return blocked(`no process was started: ${messageOf(error)}`);
  }
}

const plantLink = `
def plant():
    if os.path.lexists(P["spot"]):
        os.rename(P["spot"], P["spot"] + "-aside")
    os.symlink(P["target"], P["spot"])
    return "the link is in place"
attempt("link", plant)
`;

const throughLink = `
def read():
    return content(os.path.join(P["spot"], P["name"])) and "the host's file can be read"
def write():
    with open(os.path.join(P["spot"], P["name"]), "w") as file:
        file.write("changed")
attempt("read", read)
attempt("write", write)
`;
