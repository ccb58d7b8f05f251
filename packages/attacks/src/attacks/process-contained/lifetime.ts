import { endProcessesWith, processesWith } from "../../decoys/host-processes.js";
import { freshNonce } from "../../decoys/nonce.js";
import { commandOf, runProgram, textOf } from "../../programs/run-program.js";
import { waitForLine } from "../../programs/wait-for.js";
import { type Attack, type AttackOutcome, blocked, notRun, reached } from "../attack.js";

/** Processes that try to outlive their sandbox. They end by themselves after two minutes. */
export const lifetimeAttacks = [outlivesClose(), outlivesParent(), outlivesRunner()] as const;

/** Daemons that left their parent, group and session, and ignore every signal that can be ignored. */
const daemons = `
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 32):
                if number not in (signal.SIGKILL, signal.SIGSTOP):
                    signal.signal(number, signal.SIG_IGN)
            null = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            time.sleep(120)
        os._exit(0)
    os.wait()
for _ in range(3):
    daemon()
say("STARTED")
if P["stays"]:
    time.sleep(120)  # Not until its input ends: that comes with the runner's own end of the pipe.
`;

function outlivesClose(): Attack {
  return {
    id: "process.contained/outlive-close",
    capability: "process.contained",
    title: "leave daemons that outlive the sandbox",
    alone: true,
    perform: (stage) =>
      withMark(async (mark) => {
        const main = await stage.sandbox.spawn(commandOf(daemons, { mark, stays: true }));
        const started = await waitForLine(main.stdout, "STARTED");
        if (started === undefined)
          return notRun(`the daemons weren't started: ${(await textOf(main.stderr)).slice(-200)}`);
        const seen = processesWith(mark).length;
        await stage.sandbox.close();
        return left(mark, `${seen} processes were seen on the host, and none is left`);
      }),
  };
}

function outlivesParent(): Attack {
  return {
    id: "process.contained/outlive-parent",
    capability: "process.contained",
    title: "leave daemons that outlive the spawned process",
    perform: (stage) =>
      withMark(async (mark) => {
        const finished = await runProgram(stage.sandbox, daemons, { mark, stays: false });
        if (!finished.stdout.includes("STARTED")) return notRun(finished.stderr.slice(-200));
        return left(mark, "it exited after everything it had started was gone");
      }),
  };
}

function outlivesRunner(): Attack {
  return {
    id: "process.contained/outlive-runner",
    stoppedBy: ["exit with the runner"],
    capability: "process.contained",
    title: "outlive a runner that is killed without warning",
    needsRunner: true,
    alone: true,
    perform: ({ startRunner }) =>
      withMark(async (mark) => {
        if (startRunner === undefined) return notRun("the kit has no way to start a separate runner");
        const runner = await startRunner({ argv: commandOf(daemons, { mark, stays: true }).argv });
        try {
          await runner.says("STARTED");
          await runner.kill();
          // The kernel ends a namespace asynchronously, so this waits a moment before it checks.
          for (let look = 0; look < 50 && insideProcesses(mark, runner.pid).length > 0; look++)
            await moment();
          return left(mark, "nothing of the sandbox was left");
        } finally {
          await runner.kill();
        }
      }),
  };
}

const insideProcesses = (mark: string, runner: number) => processesWith(mark).filter((pid) => pid !== runner);
const moment = () => new Promise((resolve) => setTimeout(resolve, 20));

async function withMark(attack: (mark: string) => Promise<AttackOutcome>): Promise<AttackOutcome> {
  const mark = freshNonce();
  try {
    return await attack(mark);
  } finally {
    endProcessesWith(mark);
  }
}

function left(mark: string, otherwise: string): AttackOutcome {
  const remaining = processesWith(mark).length;
  return remaining > 0 ? reached(`${remaining} processes are still running on the host`) : blocked(otherwise);
}
