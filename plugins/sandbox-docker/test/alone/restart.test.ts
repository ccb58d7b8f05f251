import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runToEnd } from "@ambit/backend-kit";
import { crashEngine, unavailableReason } from "@ambit/docker-engine";
import { expect, it, onTestFinished } from "vitest";
import { configSchema, DockerSandbox } from "../../src/index.js";
import { Left } from "../support/left.js";
import { scope, settingsFor, specOf } from "../support/on-engine.js";

it("ends its sessions when the engine crashes, and opens new ones on the restarted engine", {
  timeout: 60_000,
}, async (context) => {
  const reason = unavailableReason();
  if (reason !== undefined) context.skip(`host: ${reason}`);
  // It kills the engine that other tests use, so the whole suite runs it after them, in a separate project.
  if (!context.task.file.projectName?.endsWith("(alone)")) context.skip("host: other tests use this engine");
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-docker-restart-"));
  onTestFinished(() => rm(dataFolder, { recursive: true, force: true }));
  const deployment = `restart-${process.pid}`;
  const left = new Left(deployment);
  const backend = new DockerSandbox(configSchema.parse({ ...settingsFor("runc", dataFolder), deployment }));
  const failures: string[] = [];
  const spec = specOf({}, { onFailure: ({ message }) => failures.push(message) });
  const sandbox = await backend.open(spec, scope);
  const running = await sandbox.spawn({ argv: ["/bin/sleep", "60"], env: {} });
  expect(await left.sessions()).toEqual([spec.id]);

  if (!(await crashEngine()))
    context.skip("host: this engine wasn't started by the tests, so they don't kill it");
  await expect.poll(() => failures, { timeout: 30_000 }).toHaveLength(1);
  expect(failures[0]).toMatch(/engine/);
  expect((await running.exit).code).not.toBe(0);
  await sandbox.close();

  const next = await backend.open(specOf({}), scope);
  expect((await runToEnd(next, { argv: ["/bin/true"], env: {} })).exit.code).toBe(0);
  await next.close();
  expect(await left.sessions()).toEqual([]);
  expect(await left.volumes()).toEqual([]);
});
