import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { killMarked, markerVariable, nextLook, startOf } from "../../src/process/marked-processes.js";

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
