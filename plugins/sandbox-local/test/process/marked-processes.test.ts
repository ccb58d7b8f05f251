import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { killMarked, markerVariable, startOf } from "../../src/process/marked-processes.js";

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
