import { type Allowance, reached, type Stage } from "../attacks/attack.js";
import { outcomeOf } from "../attacks/program-attack.js";
import { runProgram } from "../programs/run-program.js";
import { programAllowance } from "./program-allowance.js";

const scratch = `
def scratch():
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "scratch-" + P["nonce"])
    with open(path, "w") as file:
        file.write("mine")
    return content(path) == b"mine" and "written and read"
attempt("scratch", scratch)`;

export const filesystemAllowances = {
  "filesystem.read-only": [
    programAllowance({
      id: "filesystem.read-only/scratch",
      title: "scratch can be written",
      program: scratch,
    }),
    {
      id: "filesystem.read-only/read",
      capability: "filesystem.read-only",
      title: "the workspace can be read",
      perform: async ({ sandbox }: Stage) => {
        const path = `${sandbox.workspace}/to-be-read.txt`;
        await sandbox.writeFiles([{ path, content: "for the run" }]);
        return outcomeOf(
          await runProgram(sandbox, `attempt("open", lambda: content(P["path"]).decode())`, { path }),
        );
      },
    } satisfies Allowance,
  ],
  "filesystem.workspace-only": [
    programAllowance({
      id: "filesystem.workspace-only/scratch",
      title: "scratch can be written",
      program: scratch,
    }),
    {
      id: "filesystem.workspace-only/write",
      capability: "filesystem.workspace-only",
      title: "the workspace can be written, and the runner reads it",
      perform: async ({ sandbox }: Stage) => {
        const path = `${sandbox.workspace}/by-the-run.txt`;
        const ran = outcomeOf(await runProgram(sandbox, writeOwn, { path }));
        if (ran.result !== "reached") return ran;
        return reached(`the runner read: ${new TextDecoder().decode(await sandbox.readFile(path))}`);
      },
    } satisfies Allowance,
  ],
  "filesystem.none": [
    programAllowance({
      id: "filesystem.none/scratch",
      title: "scratch can be written",
      options: { cwd: "/" },
      program: scratch,
    }),
  ],
  "filesystem.host-hidden": [
    programAllowance({
      id: "filesystem.host-hidden/runtime",
      title: "programs of the host can be run",
      program: `attempt("sh", lambda: subprocess.run(["/bin/sh", "-c", "echo works"], stdout=subprocess.PIPE).stdout.decode())`,
    }),
  ],
} as const;

const writeOwn = `
def write():
    with open(P["path"], "w") as file:
        file.write("by the run")
    return "written"
attempt("write", write)`;
