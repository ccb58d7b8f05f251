import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startRunner } from "../support/runner.js";
import { isRunning, temporaryFolder, unconfinedBackend } from "../support/specs.js";

const daemon = 'setsid sh -c "trap \\"\\" TERM HUP; echo \\$\\$; while :; do sleep 1; done" & wait';

test("the next start ends and removes what a killed runner left, and touches no live runner's", async () => {
  const dataFolder = await temporaryFolder();
  const config = { dataFolder, unconfined: "prefer" };
  const [dead, alive] = await Promise.all([startRunner(config, daemon), startRunner(config, daemon)]);
  await dead.kill();
  // The control: nothing else cleans up after an unconfined one.
  expect(await isRunning(Number(dead.said))).toBe(true);
  expect(await readdir(join(dataFolder, "runners"))).toHaveLength(2);

  await (await unconfinedBackend(dataFolder)).probe(AbortSignal.timeout(10_000));
  expect(await isRunning(Number(dead.said))).toBe(false);
  expect(await isRunning(Number(alive.said))).toBe(true);
  // The live runner's, and this test's own.
  expect(await readdir(join(dataFolder, "runners"))).toHaveLength(2);
  await alive.kill();
  await (await unconfinedBackend(dataFolder)).probe(AbortSignal.timeout(10_000));
  expect(await isRunning(Number(alive.said))).toBe(false);
});
