// needs: docker
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxFailed } from "@ambit/core/plugin";
import { unavailableReason } from "@ambit/docker-engine";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { describeUnless } from "../../../scripts/vitest/skip-without.ts";
import { configSchema, DockerSandbox } from "../src/index.js";
import { EngineProxy } from "./support/engine-proxy.js";
import { Left } from "./support/left.js";
import { scope, settingsFor, specOf } from "./support/on-engine.js";

const reason = unavailableReason();
const deployment = `unreachable-${process.pid}`;

/** On a machine whose disk is busy, an engine takes as long as a minute to make a container. */
const patience = { timeout: 60_000 };

describeUnless(reason)("an engine that is away for a while", { timeout: 300_000 }, () => {
  const left = new Left(deployment);
  let folder: string;
  let proxy: EngineProxy;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "ambit-docker-away-"));
    proxy = new EngineProxy(folder);
    await proxy.open();
  });
  afterAll(async () => {
    proxy.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  beforeEach(() => proxy.change("carries"));

  const backend = (requestTimeoutMs = 120_000) =>
    new DockerSandbox(
      configSchema.parse({
        ...settingsFor("runc", folder),
        engine: proxy.address,
        deployment,
        reapMinutes: 0.005,
        requestTimeoutMs,
      }),
    );

  it("ends the session, and removes its container once it is back", async () => {
    const failures: SandboxFailed[] = [];
    const spec = specOf({}, { onFailure: (failure) => failures.push(failure) });
    const sandbox = await backend().open(spec, scope);
    expect(await left.sessions()).toEqual([spec.id]);
    proxy.change("refuses");
    await expect.poll(() => failures.length, patience).toBe(1);
    await expect(sandbox.close()).rejects.toThrow(/couldn't remove the container/);
    expect(await left.sessions()).toEqual([spec.id]);
    proxy.change("carries");
    await expect.poll(() => left.sessions(), patience).toEqual([]);
    expect(await left.volumes()).toEqual([]);
  });

  it("removes the volume of a container that others removed without it", async () => {
    const spec = specOf({});
    const sandbox = await backend().open(spec, scope);
    await left.sessions();
    await left.remove(spec.id, { v: false });
    await sandbox.close();
    await expect.poll(() => left.volumes(), patience).toEqual([]);
  });

  it("is asked again for a command whose connection it dropped, and the sandbox opens", async () => {
    proxy.dropNext(/^POST \/exec\/\w+\/start/);
    const sandbox = await backend().open(specOf({}), scope);
    expect(proxy.hasDropped).toBe(true);
    await sandbox.close();
  });

  it("waits no longer for an answer than requestTimeoutMs, and says so", async () => {
    proxy.change("isSilent");
    const opening = backend(1_000).open(specOf({}), scope);
    await expect(opening).rejects.toThrow(
      `The engine couldn't start a container: the engine at ${proxy.address} didn't answer within 1 s: see its log, restart it, or raise sandbox-docker's requestTimeoutMs`,
    );
  });
});
