// needs: docker
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runToEnd } from "@ambit/backend-kit";
import { SandboxFailed } from "@ambit/core/plugin";
import { unavailableReason } from "@ambit/docker-engine";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { describeUnless } from "../../../scripts/vitest/skip-without.ts";
import { fixFor } from "../src/engine/engine.js";
import { configSchema, DockerSandbox } from "../src/index.js";
import { Left } from "./support/left.js";
import { scope, settingsFor, specOf } from "./support/on-engine.js";

const runnerFile = fileURLToPath(new URL("./support/runner.mjs", import.meta.url));
const closed = {
  network: { mode: "off", rules: [] },
  filesystem: { mode: "workspace", readable: [], writable: [], denied: [] },
} as const;
const deployment = `life-${process.pid}`;

let dataFolder: string;
beforeAll(async () => {
  dataFolder = await mkdtemp(join(tmpdir(), "ambit-docker-life-"));
});
afterAll(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));

const backendWith = (settings: object = {}) =>
  new DockerSandbox(configSchema.parse({ ...settingsFor("runc", dataFolder), deployment, ...settings }));

const failureOf = async (opening: Promise<unknown>): Promise<SandboxFailed> => {
  const error = await opening.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof SandboxFailed)) throw new Error(`it ended with ${String(error)}`);
  return error;
};

describeUnless(unavailableReason())("on a real engine", () => {
  const left = new Left(deployment);

  async function runnerWith(id: string): Promise<ChildProcess> {
    const settings = { ...settingsFor("runc", dataFolder), deployment };
    const argument = JSON.stringify({ settings, id });
    const runner = spawn(process.execPath, [runnerFile, argument], { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => kill(runner));
    await once(runner.stdout, "data");
    return runner;
  }

  async function kill(runner: ChildProcess): Promise<void> {
    if (runner.exitCode !== null || runner.signalCode !== null) return;
    runner.kill("SIGKILL");
    await once(runner, "exit");
  }

  it("removes a killed runner's containers and volumes at the start and on an interval, but none of a live runner", {
    timeout: 60_000,
  }, async () => {
    const [dead, dying, living] = await Promise.all(["dead", "dying", "living"].map(runnerWith));
    expect(await left.sessions()).toEqual(["dead", "dying", "living"]);
    expect(left.seen).toBe(3);
    await kill(dead as ChildProcess);
    const backend = backendWith({ reapMinutes: 0.01 });
    const sandbox = await backend.open(specOf(closed, { id: "own" }), scope);
    await expect.poll(() => left.sessions(), { timeout: 10_000 }).toEqual(["dying", "living", "own"]);
    await kill(dying as ChildProcess);
    await expect.poll(() => left.sessions(), { timeout: 10_000 }).toEqual(["living", "own"]);
    expect((await runToEnd(sandbox, { argv: ["/bin/true"], env: {} })).exit.code).toBe(0);
    await sandbox.close();
    await kill(living as ChildProcess);
    await expect.poll(() => left.sessions(), { timeout: 10_000 }).toEqual([]);
    // A container's volumes are removed after it.
    await expect.poll(() => left.volumes(), { timeout: 10_000 }).toEqual([]);
  });

  it("ends the session with the reason when another program removes its container", async () => {
    const failures: SandboxFailed[] = [];
    const spec = specOf(closed, { onFailure: (failure) => failures.push(failure) });
    const sandbox = await backendWith().open(spec, scope);
    await left.sessions();
    await left.remove(spec.id);
    await expect
      .poll(() => failures.map(({ message }) => message), { timeout: 10_000 })
      .toEqual([expect.stringMatching(/^The container (was removed|doesn.t run any more)/)]);
    await sandbox.close();
    expect(await left.volumes()).toEqual([]);
  });

  it("keeps a session whose workspace is full: its writes fail with the reason, and others can write", async () => {
    const sandbox = await backendWith().open(specOf({ ...closed, resources: { diskMb: 16 } }), scope);
    try {
      const argv = ["/bin/sh", "-c", "head -c 20000000 /dev/zero > fill"] as const;
      const { stderr, exit } = await runToEnd(sandbox, { argv, env: {} });
      expect(exit.code).not.toBe(0);
      expect(stderr).toMatch(/No space left on device/);
      const path = `${sandbox.workspace}/more`;
      const failure = await failureOf(sandbox.writeFiles([{ path, content: "x".repeat(100_000) }]));
      expect(failure.message).toMatch(/can.t be written: ENOSPC/);
      await runToEnd(sandbox, { argv: ["/bin/rm", "fill"], env: {} });
      await sandbox.writeFiles([{ path, content: "there is room again" }]);
    } finally {
      await sandbox.close();
    }
    expect(await left.sessions()).toEqual([]);
  });

  it.for<[what: string, settings: object, says: RegExp]>([
    [
      "the image is gone",
      { image: "ambit-sandbox:gone" },
      /No such image.*: build it with `npx ambit-sandbox-image build`/,
    ],
    [
      "another image is gone",
      { image: "gone:1" },
      /No such image.*: pull it, set sandbox-docker's pull to "missing"/,
    ],
    [
      "the runtime is missing",
      { runtime: "gone" },
      /runtime.*gone.*: register the runtime gone with the engine/,
    ],
    ["the network is missing", { network: "gone" }, /network gone not found: set sandbox-docker's network/],
  ])("says what to do when %s, and leaves nothing", async ([, settings, says]) => {
    const failure = await failureOf(backendWith(settings).open(specOf({}), scope));
    expect(failure.message).toMatch(says);
    expect(await left.sessions()).toEqual([]);
  });
});

describe("an unusable engine", () => {
  it("is named with the fix where DOCKER_HOST isn't an address that Ambit can use", async () => {
    vi.stubEnv("DOCKER_HOST", "ssh://me@host");
    onTestFinished(() => void vi.unstubAllEnvs());
    const backend = backendWith({ engine: undefined });
    const fix = 'set it, or sandbox-docker\'s engine, to "unix:///path/to/docker.sock" or "tcp://host:port"';
    const failure = await failureOf(backend.open(specOf(closed), scope));
    expect(failure.message).toBe(`DOCKER_HOST is "ssh://me@host": ${fix}`);
    const [finding] = await backend.probe(AbortSignal.timeout(10_000));
    expect(finding).toMatchObject({ reason: 'DOCKER_HOST is "ssh://me@host"', fix });
  });

  it.for([
    ["runsc", "use the runtime runc: runsc doesn't hold this limit here"],
    ["runc", "look at `docker info`: "],
  ] as const)("gets a fix for a limit that doesn't hold with %s", ([runtime, fix]) => {
    const config = configSchema.parse({ runtime });
    expect(fixFor(new Error("0.9 cores were had"), config, "resources.cpu")).toContain(fix);
    expect(fixFor(new Error("No such image: gone"), config, "resources.cpu")).toContain("build it");
    const rootless = new Error("The engine was asked for PidsLimit 4096, and applied 0");
    expect(fixFor(rootless, config, "network.deny")).toContain("cgroups of version 2");
  });

  it("is reported with a fix when it doesn't run", async () => {
    const backend = backendWith({ engine: "unix:///nowhere/docker.sock" });
    const failure = await failureOf(backend.open(specOf(closed), scope));
    expect(failure.message).toBe(
      "The engine couldn't start a container: no engine answers at unix:///nowhere/docker.sock: start Docker or Podman's service, or set sandbox-docker's engine or DOCKER_HOST to its address",
    );
    const [finding] = await backend.probe(AbortSignal.timeout(10_000));
    expect(finding).toMatchObject({
      proven: false,
      fix: expect.stringMatching(/^start Docker or Podman's service/),
    });
  });

  it("is reported with a fix when its disk is full", async () => {
    const server = createServer((request, response) => {
      request.resume();
      const message = "failed to create shim task: mkdir /var/lib/docker/x: no space left on device";
      response.writeHead(500, { "content-type": "application/json" }).end(JSON.stringify({ message }));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void server.close());
    const engine = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const failure = await failureOf(backendWith({ engine }).open(specOf(closed), scope));
    expect(failure.message).toMatch(/no space left on device: free space where the engine keeps its data/);
  });
});
