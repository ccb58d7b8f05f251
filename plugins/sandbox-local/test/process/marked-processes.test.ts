import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { skipWithout } from "../../../../scripts/vitest/skip-without.ts";
import {
  killMarked,
  markerVariable,
  nextLook,
  parseStat,
  readStat,
  startOf,
} from "../../src/process/host-processes.js";

it("kills what carries the mark, and skips processes that started before the given time", async () => {
  const mark = randomUUID();
  const sleeping = async () => {
    const child = spawn("sleep", ["600"], { env: { [markerVariable]: mark }, stdio: "ignore" });
    await once(child, "spawn");
    return child;
  };
  const older = await sleeping();
  // The kernel counts in hundredths of a second.
  await delay(50);
  const younger = await sleeping();
  expect(await killMarked(mark, { since: startOf(younger.pid ?? 0) })).toBe(1);
  expect([older.signalCode, older.exitCode]).toEqual([null, null]);
  expect(await killMarked(mark)).toBe(1);
});

it.each([
  ["all processes, after it killed one, which may have started others", [7], [8], "all"],
  ["only at those that showed nothing, of which there are always some on a busy host", [], [8, 9], [8, 9]],
  ["at none", [], [], undefined],
])("looks next at %s", (_what, marked, unknown, next) => {
  expect(nextLook({ marked, unknown })).toEqual(next);
});

describe("a process's status", () => {
  const line = (group: number, flags: number, environment: readonly [number, number]) =>
    `7 (a) b) S 1 ${group} 5 0 -1 ${flags} ${Array(12).fill(0).join(" ")} 4711 ${Array(27).fill(0).join(" ")} ${environment.join(" ")} 0`;

  it("of a program has the size of its environment, which is unknown while it becomes another one", () => {
    const status = { state: "S", parent: 1, group: 7, session: 5, started: 4711, isKernelThread: false };
    expect(parseStat(line(7, 0x40_0000, [100, 130]))).toEqual({ ...status, environmentBytes: 30 });
    expect(parseStat(line(7, 0x40_0000, [100, 100]))).toEqual({ ...status, environmentBytes: 0 });
    expect(parseStat(line(7, 0x40_0000, [0, 0]))).toEqual({ ...status, environmentBytes: undefined });
  });

  it("tells threads of the kernel by their flag: another pid namespace's group is 0 too", () => {
    expect(parseStat(line(0, 0x20_8040, [0, 0])).isKernelThread).toBe(true);
    expect(parseStat(line(0, 0x40_0000, [0, 0])).isKernelThread).toBe(false);
  });

  it("is read as the kernel writes it", async () => {
    const child = spawn("sleep", ["600"], { env: { A: "b" }, stdio: "ignore", detached: true });
    onTestFinished(() => void child.kill());
    await once(child, "spawn");
    await expect
      .poll(() => readStat(child.pid ?? 0))
      .toMatchObject({
        parent: process.pid,
        group: child.pid,
        session: child.pid,
        environmentBytes: "A=b".length + 1,
      });
  });
});

// With a single look at each process, 15 of 200 such rounds missed it.
it("kills a process that shows no mark because it is just becoming another program", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-marked-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const restarting = join(folder, "restarting");
  await writeFile(restarting, '#!/bin/sh\nexec "$0"\n', { mode: 0o755 });
  for (let round = 0; round < 60; round += 1) {
    const mark = randomUUID();
    const child = spawn(restarting, { env: { [markerVariable]: mark }, stdio: "ignore" });
    await once(child, "spawn");
    const since = startOf(child.pid ?? 0);
    await delay(5 + round / 10);
    const killed = await killMarked(mark, { since });
    child.kill("SIGKILL");
    expect(killed).toBe(1);
  }
});

it("kills it also where all process groups lie outside of the namespace", async () => {
  skipWithout("jail");
  const folder = await mkdtemp(join(tmpdir(), "ambit-marked-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const restarting = join(folder, "restarting");
  await writeFile(restarting, '#!/bin/sh\nexec "$0"\n', { mode: 0o755 });
  const program = join(folder, "program.mjs");
  await writeFile(program, programInNamespace(restarting));
  const namespace = [
    "--unshare-user",
    "--unshare-pid",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
  ];
  const child = spawn("bwrap", [...namespace, process.execPath, program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  expect(await text(child.stdout)).toBe("group 0, 0 of 200 escaped");
});

/** Starts a process again and again that keeps becoming another program, and kills it by its mark. */
function programInNamespace(restarting: string): string {
  const built = fileURLToPath(new URL("../../dist/process/host-processes.js", import.meta.url));
  return `import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { killMarked, markerVariable, readStat, startOf } from ${JSON.stringify(built)};
let [escaped, group] = [0, undefined];
for (let round = 0; round < 200; round += 1) {
  const mark = "mark-" + round;
  const child = spawn(${JSON.stringify(restarting)}, { env: { [markerVariable]: mark }, stdio: "ignore" });
  await once(child, "spawn");
  group = readStat(child.pid).group;
  await delay(2 + round / 50);
  if ((await killMarked(mark, { since: startOf(child.pid) })) !== 1) escaped += 1;
  child.kill("SIGKILL");
}
process.stdout.write(\`group \${group}, \${escaped} of 200 escaped\`);
`;
}
