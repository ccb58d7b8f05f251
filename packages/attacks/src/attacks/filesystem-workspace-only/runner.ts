import { commandOf, runProgram, textOf } from "../../programs/run-program.js";
import { waitForLine } from "../../programs/wait-for.js";
import { type Attack, blocked, reached, type Stage } from "../attack.js";
import { outcomeOf } from "../program-attack.js";
import { damage } from "./outside.js";

/** The runner writes files into the workspace on the run's behalf, and must not follow links outside. */
export const runnerAttacks = [linkForTheRunner(), exchangeUnderTheRunner()] as const;

function linkForTheRunner(): Attack {
  return {
    id: "filesystem.workspace-only/link-for-the-runner",
    stoppedBy: ["no-follow file access"],
    capability: "filesystem.workspace-only",
    title: "make the runner write a file of the host through a link in the workspace",
    perform: async (stage) => {
      const { sandbox } = stage;
      const planted = outcomeOf(await runProgram(sandbox, plant, places(stage)));
      if (planted.result !== "reached") return planted;
      for (const rest of [
        "file-link",
        `folder-link/${victimName(stage)}`,
        "folder-link/new-file",
        "new-link",
      ]) {
        // A refusal counts like a write that stays inside: the host's files show the outcome.
        await sandbox
          .writeFiles([{ path: `${sandbox.workspace}/${rest}`, content: "changed" }])
          .catch(() => undefined);
        const happened = await damage(stage);
        if (happened !== undefined) return reached(`${rest}: ${happened}`);
      }
      return blocked("the runner followed none of the links");
    },
  };
}

const attempts = 300;

function exchangeUnderTheRunner(): Attack {
  return {
    id: "filesystem.workspace-only/exchange-under-the-runner",
    stoppedBy: ["no-follow file access"],
    capability: "filesystem.workspace-only",
    title: "exchange a folder for a link to the host while the runner writes into it",
    alone: true,
    perform: async (stage) => {
      const { sandbox } = stage;
      const swapping = await sandbox.spawn(commandOf(exchange, places(stage)));
      const began = await waitForLine(swapping.stdout, "SWAPPING");
      let happened: string | undefined;
      for (let round = 0; round < attempts && happened === undefined; round++) {
        const path = `${sandbox.workspace}/spot/${victimName(stage)}`;
        await sandbox.writeFiles([{ path, content: `round ${round}` }]).catch(() => undefined);
        happened = await damage(stage);
      }
      await swapping.stdin.close().catch(() => undefined); // It may have ended by itself; its output shows why.
      const [stdout, stderr, exit] = await Promise.all([
        textOf(swapping.stdout),
        textOf(swapping.stderr),
        swapping.exit,
      ]);
      if (happened !== undefined) return reached(happened);
      const ran = outcomeOf({ stdout: `RAN\n${began ?? ""}\n${stdout}`, stderr, ...exit });
      return ran.result === "reached" ? blocked(`${attempts} writes stayed inside`) : ran;
    },
  };
}

function places({ sandbox, decoys }: Stage) {
  return { base: sandbox.workspace, folder: decoys.folder.path, file: decoys.folder.victimFile };
}

function victimName({ decoys }: Stage): string {
  return decoys.folder.victimFile.slice(decoys.folder.path.length + 1);
}

const plant = `
def plant():
    for name, target in (("file-link", P["file"]), ("folder-link", P["folder"]), ("new-link", P["folder"] + "/new")):
        os.symlink(target, os.path.join(P["base"], name))
    return "the links are in place"
attempt("links", plant)
`;

const exchange = `
import select
number = {"x86_64": 316, "aarch64": 276}[os.uname().machine]
os.chdir(P["base"])
os.mkdir("spot")
os.symlink(P["folder"], "link")
say("SWAPPING")
rounds = 0
def swap():
    global rounds
    while not select.select([0], [], [], 0)[0]:
        for _ in range(64):
            syscall(number, -100, b"spot", -100, b"link", 2)
            rounds += 1
    return "%d exchanges" % rounds
attempt("exchange", swap)
`;
