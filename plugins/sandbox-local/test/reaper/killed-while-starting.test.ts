import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { chmod, chown, readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { hostPids, statusRow } from "../support/host-processes.js";
import { startRunner } from "../support/runner.js";
import { closed, openConfined, path, run, specOf, temporaryFolder } from "../support/specs.js";
import { isRoot, ordinaryUser } from "../support/user.js";

/** Processes that hold something of the data folder open, as one does that is left over in the middle of its start. */
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

test.each([
  ["this user", undefined],
  ["an ordinary user", isRoot ? ordinaryUser : undefined],
])(
  "a runner of %s that is killed while jails come up leaves no process after the next start",
  async (_name, user) => {
    const dataFolder = await temporaryFolder();
    await chmod(dataFolder, 0o711);
    if (user !== undefined) await chown(dataFolder, user.uid, user.gid);
    const program = fileURLToPath(new URL("../support/starter.mjs", import.meta.url));
    const { onDecision: _unused, log: _too, ...spec } = specOf({ boundary: closed });
    for (let each = 0; each < 5; each++) {
      const texts = [{ dataFolder }, spec].map((part) => JSON.stringify(part));
      const runner = spawn(process.execPath, [program, ...texts], {
        stdio: ["ignore", "pipe", "inherit"],
        cwd: "/",
        ...user,
      });
      onTestFinished(() => void runner.kill("SIGKILL"));
      await once(runner.stdout, "data");
      await new Promise((resolve) => setTimeout(resolve, 20 + each * 17));
      const gone = once(runner, "exit");
      runner.kill("SIGKILL");
      await gone;
    }
    const next = await startRunner({ dataFolder }, "echo up; read _", user === undefined ? {} : { user });
    await next.kill();
    await expect.poll(() => holdersOf(dataFolder)).toEqual([]);
    expect(await readdir(join(dataFolder, "runners"))).toHaveLength(1);
  },
);

/** Whether it is bubblewrap, of this user, and no zombie. */
function namesLauncher(pid: string, uid: string): boolean {
  const isRunning = !statusRow(pid, "State")?.startsWith("Z");
  return isRunning && statusRow(pid, "Name") === "bwrap" && statusRow(pid, "Uid")?.startsWith(uid) === true;
}

test("a start that is given up leaves no process, also with the runner alive", async () => {
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
