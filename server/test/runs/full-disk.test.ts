import { spawnSync } from "node:child_process";
import { mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { Script } from "../support/scripted-agent.js";
import { asking, bodyOf } from "../support/server.js";
import { serveStored } from "../support/stored-server.js";

it("answers a JSON caller on a full disk, ends the run as store_failed and deletes it there", {
  timeout: 60_000,
}, async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-full-"));
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs", folder]);
  onTestFinished(async () => {
    if (status === 0) spawnSync("umount", [folder]);
    await rm(folder, { recursive: true, force: true });
  });
  if (status !== 0) context.skip("host: no file system can be mounted here, so no disk can be filled");
  const full = Promise.withResolvers<void>();
  const script: Script = async function* ({ signal }) {
    yield { type: "message", text: "before" };
    await full.promise;
    // More than what SQLite's log has room for.
    yield { type: "message", text: "x".repeat(3_000_000) };
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };
  const { post, get, remove } = await serveStored(script, {
    file: join(folder, "runs.sqlite"),
    configuration: { server: { drainMs: 100 }, store: { retryTimeoutMs: 1_000 } },
  });
  const waiting = post("/run", { ...asking, runId: "r" });
  const state = async () => (await bodyOf<{ state?: string }>(await get("/runs/r"))).state;
  await expect.poll(state, { timeout: 10_000 }).toBe("running");
  const { bavail, bsize } = await statfs(folder);
  // The server takes some of it meanwhile.
  const isFull = (error: NodeJS.ErrnoException) => expect(error.code).toBe("ENOSPC");
  await writeFile(join(folder, "filling"), Buffer.alloc(bavail * bsize)).catch(isFull);
  full.resolve();
  const answered = await waiting;
  expect([answered.status, await answered.json()]).toMatchObject([
    503,
    { ok: false, failure: { code: "store_failed", retryable: true } },
  ]);
  await expect
    .poll(async () => (await get("/runs/r")).json(), { timeout: 20_000 })
    .toMatchObject({ state: "ended", result: { ok: false, failure: { code: "store_failed" } } });
  expect((await remove("/runs/r")).status).toBe(200);
  expect((await get("/runs/r")).status).toBe(404);
});
