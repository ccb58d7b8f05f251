import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { probeSpec, runToEnd } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import type { SandboxFailed } from "@ambit/core/plugin";
import { dockerEngine, startSmallEngine, unavailableReason } from "@ambit/docker-engine";
import { HttpRelay } from "@ambit/fakes/http-relay";
import Docker from "dockerode";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { configSchema, DockerSandbox } from "../src/index.js";
import { scope, settingsFor, specOf } from "./support/on-engine.js";

const reason = unavailableReason("runc");

/** A sandbox with a waiting process, and what its backend reports when it is lost. */
async function waiting() {
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-lost-"));
  const settings = { ...settingsFor("runc", dataFolder), deployment: "lost" };
  const backend = new DockerSandbox(configSchema.parse(settings));
  const failures: SandboxFailed[] = [];
  const spec = probeSpec(
    { network: { mode: "off", rules: [] }, resources: { memoryMb: 128 } },
    { onFailure: (failure) => failures.push(failure) },
  );
  const scope = { signal: new AbortController().signal, defer: () => undefined };
  const sandbox = await backend.open(spec, scope);
  onTestFinished(async () => {
    await sandbox.close();
    await rm(dataFolder, { recursive: true, force: true, maxRetries: 5 });
  });
  const engine = new Docker({ socketPath: dockerEngine().socket });
  const container = engine.getContainer(String(sandbox.evidence["docker.container"]));
  const child = await sandbox.spawn({ argv: ["/bin/sleep", "600"], env: {} });
  return { sandbox, container, child, failures };
}

describe("a sandbox that is lost during a run", () => {
  beforeEach((context) => {
    if (reason !== undefined) context.skip(`host: ${reason}`);
  });

  it.each([
    [
      "is stopped",
      async (one: Docker.Container) => one.kill(),
      /doesn't run any more \(exited, exit code 137\)/,
    ],
    ["is removed", async (one: Docker.Container) => one.remove({ force: true }), /was removed|doesn't run/],
  ])("ends every stream, and says that its container %s", async (_what, end, words) => {
    const { sandbox, container, child, failures } = await waiting();
    await end(container);
    await expect(child.exit).resolves.toEqual({ code: null, signal: "SIGKILL" });
    expect(failures.map(({ message }) => message)).toEqual([expect.stringMatching(words)]);
    await expect(sandbox.spawn({ argv: ["/bin/true"], env: {} })).rejects.toThrow("lost");
  });

  it("ends with its guest daemon, and so does its container", async () => {
    const { container, child, failures } = await waiting();
    const kill = await container.exec({
      Cmd: [
        "/bin/sh",
        "-c",
        'for one in /proc/[0-9]*; do grep -qa bridge[.]cjs "$one/cmdline" && kill -9 "$(basename $one)"; done',
      ],
      User: "0:0",
      AttachStdout: true,
    });
    await kill.start({});
    await child.exit;
    expect(failures.map(({ message }) => message)).toEqual([
      expect.stringMatching(/doesn't run any more \(exited, exit code 137\)/),
    ]);
    expect((await container.inspect()).State.Running).toBe(false);
  });
});

const boundary = { network: { mode: "off", rules: [] } } as const;

const shell = (sandbox: RemoteSandbox, script: string) =>
  runToEnd(sandbox, { argv: ["/bin/sh", "-c", script], env: { PATH: "/usr/bin:/bin" } });

it("opens nothing while the engine's disk is full, leaves nothing, and keeps the sessions that it has", {
  timeout: 60_000,
}, async (context) => {
  const reason = unavailableReason();
  if (reason !== undefined) context.skip(`host: ${reason}`);
  if (process.getuid?.() !== 0) context.skip("host: a second engine needs root");
  const engine = await startSmallEngine(64);
  onTestFinished(() => engine.close());
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-docker-full-"));
  onTestFinished(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));
  const { socket, image, mounts, node } = engine;
  const settings = { engine: `unix://${socket}`, image, mounts, network: "none", dataFolder, prewarm: 0 };
  const backend = new DockerSandbox(configSchema.parse({ ...settings, bridge: { node } }));
  const docker = new Docker({ socketPath: socket });
  const left = async () => {
    const [containers, { Volumes }] = [
      await docker.listContainers({ all: true }),
      await docker.listVolumes(),
    ];
    return [containers.length, (Volumes ?? []).length];
  };
  const failures: string[] = [];
  const open = () =>
    backend.open(specOf(boundary, { onFailure: ({ message }) => failures.push(message) }), scope);

  const greedy = await open();
  const [other, third] = [await open(), await open()];
  expect(await left()).toEqual([3, 3]);
  // The attack, and its control: a workspace without a limit takes what the engine's disk has.
  const filled = await shell(greedy, "head -c 100000000 /dev/zero > fill; stat -c %s fill");
  expect(filled.stderr).toMatch(/No space left on device/);
  expect(Number(filled.stdout)).toBeGreaterThan(1_000_000);

  await expect(open()).rejects.toMatchObject({
    name: "SandboxFailed",
    message: expect.stringMatching(/no space left on device: free space where the engine keeps its data/i),
  });
  expect(await left()).toEqual([3, 3]);
  expect((await shell(other, "echo up")).stdout).toBe("up\n");
  const write = other.writeFiles([{ path: `${other.workspace}/more`, content: "x".repeat(100_000) }]);
  await expect(write).rejects.toThrow(/can.t be written: ENOSPC/);
  await third.close();
  expect(await left()).toEqual([2, 2]);

  await greedy.close();
  await other.writeFiles([{ path: `${other.workspace}/more`, content: "room" }]);
  expect((await shell(other, "cat more")).stdout).toBe("room");
  const next = await open();
  expect((await shell(next, "echo up")).stdout).toBe("up\n");
  await next.close();
  await other.close();
  expect(await left()).toEqual([0, 0]);
  expect(failures).toEqual([]);
});

it("is refused with what the engine ignored, where its container has ended by it before a command runs there", async (context) => {
  if (reason !== undefined) context.skip(`host: ${reason}`);
  const { socket } = dockerEngine();
  const engine = new Docker({ socketPath: socket });
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-lost-"));
  const relay = new HttpRelay(
    { socketPath: socket },
    {
      async request(asked) {
        const [, container] = /\/containers\/(\w+)\/exec$/.exec(asked.url) ?? [];
        if (container !== undefined) await engine.getContainer(container).wait();
        if (!/\/containers\/create\b/.test(asked.url)) return asked;
        // The guest daemon starts processes as other users, and so ends without root.
        const order = { ...JSON.parse(asked.body.toString()), User: "61000:61000" };
        return { ...asked, body: Buffer.from(JSON.stringify(order)) };
      },
    },
  );
  const path = join(dataFolder, "engine.sock");
  await relay.listen(path);
  const settings = { ...settingsFor("runc", dataFolder), engine: `unix://${path}`, deployment: "ending" };
  const backend = new DockerSandbox(configSchema.parse(settings));
  onTestFinished(async () => {
    await backend.close();
    await relay.close();
    await rm(dataFolder, { recursive: true, force: true, maxRetries: 5 });
  });
  await expect(backend.open(specOf({ network: { mode: "off", rules: [] } }), scope)).rejects.toThrow(
    'The engine was asked for the user 0:0, and applied "61000:61000"',
  );
});
