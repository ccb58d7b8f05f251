// needs: jail
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { chmod, chown, readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { repetitions } from "@ambit/testkit";
import { expect, onTestFinished, test } from "vitest";
import { markArgument, markOf } from "../../src/process/host-processes.js";
import { hostPids, statusRow } from "../support/host-processes.js";
import { closed, everythingOn, openConfined, path, run, specOf, temporaryFolder } from "../support/specs.js";
import { isRoot, ordinaryUser } from "../support/user.js";

/** Processes with an open file of the data folder, as a process has that is left over in the middle of its start. */
function holdersOf(dataFolder: string): readonly string[] {
  return hostPids().filter((pid) => {
    try {
      return readdirSync(`/proc/${pid}/fd`).some((fd) =>
        readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith(dataFolder),
      );
    } catch (error) {
      // Gone since it was listed, or another user's.
      if (error instanceof Error && "code" in error) return false;
      throw error;
    }
  });
}

/** Processes that carry the mark of a runner of one of the data folders in this one. */
async function markedIn(folder: string): Promise<readonly string[]> {
  const runners = (await readdir(folder)).map((name) => readdir(join(folder, name, "runners")));
  const keys = (await Promise.all(runners)).flat();
  const markers = keys.map((key) => markArgument(markOf(key)));
  return hostPids().filter((pid) => {
    try {
      const files = ["environ", "cmdline"].map((file) => readFileSync(`/proc/${pid}/${file}`, "latin1"));
      return markers.some((mark) => files.some((text) => `\0${text}`.includes(`\0${mark}`)));
    } catch (error) {
      // Gone since it was listed, or another user's.
      if (error instanceof Error && "code" in error) return false;
      throw error;
    }
  });
}

const confined = { unconfined: "refuse", boundary: closed };
const bare = { unconfined: "prefer", boundary: everythingOn };

/** Like root in a container by default, which can't read the environment of another user's process. */
const withoutTracing = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", "--"];

test.each([
  ["confined, of this user", repetitions({ short: 8, soak: 60 }), confined, undefined, []],
  [
    "confined, of an ordinary user",
    repetitions({ short: 4, soak: 20 }),
    confined,
    isRoot ? ordinaryUser : undefined,
    [],
  ],
  [
    "confined, of a container's root",
    repetitions({ short: 4, soak: 20 }),
    confined,
    undefined,
    isRoot ? withoutTracing : [],
  ],
  ["unconfined", repetitions({ short: 4, soak: 40 }), bare, undefined, []],
])(
  "a runner that is killed while processes start leaves none: %s, %i times",
  { timeout: 240_000 },
  async (_name, kills, { unconfined, boundary }, user, prefix) => {
    const dataFolder = await temporaryFolder();
    await chmod(dataFolder, 0o711);
    if (user !== undefined) await chown(dataFolder, user.uid, user.gid);
    const program = fileURLToPath(new URL("../support/starter.mjs", import.meta.url));
    const { onDecision: _unused, log: _too, ...spec } = specOf({ boundary });
    const startAndKill = async (number: number) => {
      // Separate data folders, so that no other start cleans up.
      const config = { dataFolder: join(dataFolder, String(number)), unconfined };
      const texts = [config, spec].map((part) => JSON.stringify(part));
      const [command = process.execPath, ...args] = [...prefix, process.execPath, program, ...texts];
      const runner = spawn(command, args, {
        stdio: ["ignore", "pipe", "inherit"],
        cwd: "/",
        ...user,
      });
      onTestFinished(() => void runner.kill("SIGKILL"));
      await once(runner.stdout, "data");
      // Some process is always in the middle of its start: four are under way.
      await delay(Math.random() * 40);
      const gone = once(runner, "exit");
      runner.kill("SIGKILL");
      await gone;
    };
    for (let killed = 0; killed < kills; killed += 4) {
      await Promise.all([0, 1, 2, 3].map((other) => startAndKill(killed + other)));
    }
    await expect.poll(() => markedIn(dataFolder), { timeout: 5_000 }).toEqual([]);
    await expect.poll(() => holdersOf(dataFolder), { timeout: 5_000 }).toEqual([]);
    await delay(500);
    expect(await markedIn(dataFolder)).toEqual([]);
    expect(holdersOf(dataFolder)).toEqual([]);
  },
);

/** Whether it is bubblewrap, of this user, and no zombie. */
function namesLauncher(pid: string, uid: string): boolean {
  const isRunning = !statusRow(pid, "State")?.startsWith("Z");
  return isRunning && statusRow(pid, "Name") === "bwrap" && statusRow(pid, "Uid")?.startsWith(uid) === true;
}

test("an abandoned start leaves no process while the runner lives", async () => {
  const sandbox = await openConfined();
  const uid = String(sandbox.evidence.uid);
  const known = new Set(hostPids());
  for (let wait = 0; wait < 20; wait++) {
    const signal = AbortSignal.timeout(1 + wait);
    const spawning = sandbox.spawn({ argv: ["sleep", "60"], env: { PATH: path }, signal });
    await spawning.then(
      (started) => started.exit,
      (error: unknown) => expect(String(error)).toMatch(/abort|timeout/i),
    );
  }
  const { stdout } = await run(sandbox, ["echo", "still works"]);
  expect(stdout).toBe("still works\n");
  const left = hostPids().filter((pid) => !known.has(pid) && namesLauncher(pid, uid));
  expect(left).toEqual([]);
});
