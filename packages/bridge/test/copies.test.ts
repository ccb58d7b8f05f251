import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, it, onTestFinished } from "vitest";
import { archiveOf } from "../src/host/sandbox.js";

it("packs the runner's files once until one of them changes, up to a size limit", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-copies-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "program.js");
  await writeFile(path, "first");
  const requiredPaths = [{ path: folder, what: "the agent" }];
  const first = await archiveOf(requiredPaths, 1_000_000);
  expect(gunzipSync(first).includes("first")).toBe(true);
  expect(await archiveOf(requiredPaths, 1_000_000)).toBe(first);
  await writeFile(path, "second one");
  const second = await archiveOf(requiredPaths, 1_000_000);
  expect(gunzipSync(second).includes("second one")).toBe(true);
  const tooLarge = archiveOf(requiredPaths, 5);
  await expect(tooLarge).rejects.toThrow("the agent is larger than the 5 bytes");
});
