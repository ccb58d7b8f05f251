// needs: jail
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, chown, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { countWith } from "../support/host-processes.js";
import { killWatchOf, startRunner } from "../support/runner.js";
import { closed, isRunning, scope, specOf, temporaryFolder, unconfinedBackend } from "../support/specs.js";
import { isRoot, ordinaryUser } from "../support/user.js";

const daemon = 'setsid sh -c "trap \\"\\" TERM HUP; echo \\$\\$; while :; do sleep 1; done" & wait';

test("the next start ends and removes what a killed runner left, but nothing of a live runner", async () => {
  const dataFolder = await temporaryFolder();
  const config = { dataFolder, unconfined: "prefer" };
  const [dead, alive] = await Promise.all([startRunner(config, daemon), startRunner(config, daemon)]);
  await dead.killWithWatch();
  // The control: nothing else cleans up after an unconfined one.
  expect(await isRunning(Number(dead.said))).toBe(true);
  expect(await readdir(join(dataFolder, "runners"))).toHaveLength(2);

  await restart(dataFolder);
  expect(await isRunning(Number(dead.said))).toBe(false);
  expect(await isRunning(Number(alive.said))).toBe(true);
  // The live runner's, and this test's own.
  expect(await readdir(join(dataFolder, "runners"))).toHaveLength(2);
  // Its watch process cleans up without a next start.
  await alive.kill();
  await expect.poll(() => isRunning(Number(alive.said))).toBe(false);
  await restart(dataFolder);
  // Those of this test, from two starts.
  expect(await readdir(join(dataFolder, "runners"))).toHaveLength(2);
});

/** The next start of a runner; for the sandbox, that is its first use. */
async function restart(dataFolder: string): Promise<void> {
  const sandbox = await (await unconfinedBackend(dataFolder)).open(specOf(), scope);
  await sandbox.close();
}

test("the next start unmounts the disk of a killed runner's session", async (context) => {
  if (!isRoot) context.skip("host: only root can mount a file system");
  const dataFolder = await temporaryFolder();
  await chmod(dataFolder, 0o711);
  const spec = { boundary: { ...closed, resources: { diskMb: 8 } } };
  const runner = await startRunner(
    { dataFolder },
    "dd if=/dev/zero of=kept bs=1M count=4; echo up; sleep 60",
    {
      spec,
    },
  );
  const mounted = async () =>
    (await readFile("/proc/self/mountinfo", "utf8")).split("\n").filter((line) => line.includes(dataFolder));
  const loops = async () => (await readLoopFiles()).filter((file) => file.includes(dataFolder));
  expect(await mounted()).toHaveLength(1);
  expect(await loops()).toHaveLength(1);
  await runner.killWithWatch();
  // The control: a mount outlives the process that made it.
  expect(await mounted()).toHaveLength(1);

  await restart(dataFolder);
  expect(await mounted()).toEqual([]);
  await expect.poll(loops).toEqual([]);
  await expect.poll(() => readdir(join(dataFolder, "trash"))).toEqual([]);

  // Its watch process cleans up without a next start.
  const watched = await startRunner({ dataFolder }, "echo up; sleep 60", { spec });
  expect(await mounted()).toHaveLength(1);
  await watched.kill();
  await expect.poll(mounted, { timeout: 10_000 }).toEqual([]);
});

/** The files behind the host's loop devices. */
async function readLoopFiles(): Promise<string[]> {
  const devices = (await readdir("/sys/block")).filter((name) => name.startsWith("loop"));
  const files = devices.map((name) =>
    readFile(`/sys/block/${name}/loop/backing_file`, "utf8").catch(() => ""),
  );
  return await Promise.all(files);
}

const resources = { memoryMb: 256, processes: 60, cpus: 1 };

test.each([
  ["root", isRoot, undefined, { ...closed, resources }],
  ["an ordinary user", isRoot, ordinaryUser, closed],
  ["this user", !isRoot, undefined, closed],
] as const)(
  "a confined run of %s ends at once with its killed runner; the next start removes the rest",
  async (_name, applies, user, boundary) => {
    if (!applies) return;
    const dataFolder = await temporaryFolder();
    await chmod(dataFolder, 0o711);
    if (user !== undefined) await chown(dataFolder, user.uid, user.gid);
    const config = { dataFolder };
    const seconds = String(31_000_000 + Math.floor(Math.random() * 900_000));
    const script = `setsid sh -c 'trap "" TERM HUP; sleep ${seconds} & wait' </dev/null >/dev/null 2>&1 & sleep 0.3; echo up; sleep ${seconds}`;
    const options = { spec: { boundary }, ...(user === undefined ? {} : { user }) };
    const runner = await startRunner(config, script, options);
    expect(runner.evidence.confinement).toBe("confined");
    await expect.poll(() => countWith(seconds)).toBeGreaterThanOrEqual(2);
    await runner.kill();
    await expect.poll(() => countWith(seconds)).toBe(0);

    const groups = await groupsOf(dataFolder);
    expect(groups).toHaveLength("resources" in boundary && boundary.resources === resources ? 3 : 0);
    expect(groups.filter((path) => !existsSync(path))).toEqual([]);
    const next = await startRunner(config, "echo up; read _", options);
    expect(await readdir(join(dataFolder, "runners"))).toHaveLength(1);
    expect(groups.filter((path) => existsSync(path))).toEqual([]);
    await next.kill();
    const last = await groupsOf(dataFolder);
    expect(last).toHaveLength(groups.length);
    if (user === undefined) await restart(dataFolder);
    expect(last.filter((path) => existsSync(path))).toEqual([]);
  },
);

async function groupsOf(dataFolder: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const runner of await readdir(join(dataFolder, "runners"))) {
    const folder = join(dataFolder, "runners", runner);
    for (const session of await readdir(folder)) {
      const record = join(folder, session, "groups.json");
      if (existsSync(record)) found.push(...JSON.parse(await readFile(record, "utf8")));
    }
  }
  return found;
}

test("a runner that ends with an open session leaves what the next start needs; one without leaves nothing", async () => {
  const dataFolder = await temporaryFolder();
  const config = { dataFolder, unconfined: "prefer" };
  const seconds = String(randomInt(1_000_000, 9_999_999));
  const runner = await startRunner(
    config,
    `setsid sleep ${seconds} </dev/null >/dev/null 2>&1 & echo up; read _`,
  );
  // The shell doesn't wait until it has begun.
  await expect.poll(() => countWith(seconds)).toBe(1);
  await killWatchOf(runner.child.pid ?? 0);
  const gone = once(runner.child, "exit");
  runner.child.kill("SIGUSR2");
  await gone;
  expect(await readdir(join(dataFolder, "runners"))).toHaveLength(1);
  expect(await countWith(seconds)).toBe(1);
  await restart(dataFolder);
  expect(await countWith(seconds)).toBe(0);
  const idle = spawnSync(process.execPath, [
    "--input-type=module",
    "-e",
    `import { configSchema, LocalSandbox } from ${JSON.stringify(fileURLToPath(new URL("../../dist/index.js", import.meta.url)))};
     await new LocalSandbox(configSchema.parse(${JSON.stringify({ ...config, dataFolder: `${dataFolder}/idle` })})).probe(AbortSignal.timeout(20_000));`,
  ]);
  expect(idle.status).toBe(0);
  expect(await readdir(join(dataFolder, "idle", "runners"))).toEqual([]);
});
