import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as after } from "node:timers/promises";
import { ownershipOf, probeSpec, runToEnd } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import type { Boundary, SandboxSpec } from "@ambit/core/plugin";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import Docker from "dockerode";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { preparedBy } from "../src/config.js";
import { configSchema, DockerSandbox } from "../src/index.js";
import { settingsFor } from "./support/on-engine.js";

const reason = unavailableReason("runc");
const closed: Partial<Boundary> = { network: { mode: "off", rules: [] } };
const scope = { signal: new AbortController().signal, defer: () => undefined };

describe("prepared sandboxes", () => {
  const deployment = `prewarm-${process.pid}`;
  let engine: Docker;
  let dataFolder = "";
  let backend: DockerSandbox;
  let opened: RemoteSandbox[] = [];

  beforeEach(async (context) => {
    if (reason !== undefined) context.skip(`host: ${reason}`);
    engine = new Docker({ socketPath: dockerEngine().socket });
    dataFolder = await mkdtemp(join(tmpdir(), "ambit-prewarm-"));
    backend = new DockerSandbox(
      configSchema.parse({ ...settingsFor("runc", dataFolder), deployment, prewarm: 1 }),
    );
    opened = [];
  });

  afterEach(async () => {
    if (reason !== undefined) return;
    await Promise.all(opened.map((sandbox) => sandbox.close()));
    await backend.close();
    expect(await containers()).toEqual([]);
    await rm(dataFolder, { recursive: true, force: true, maxRetries: 5 });
  });

  const open = async (boundary: Partial<Boundary> = closed, more: Partial<SandboxSpec> = {}) => {
    const sandbox = await backend.open(probeSpec(boundary, more), scope);
    opened.push(sandbox);
    return sandbox;
  };
  const containers = () =>
    engine.listContainers({ all: true, filters: { label: [`ambit-deployment=${deployment}`] } });
  const idOf = (sandbox: RemoteSandbox) => String(sandbox.evidence["docker.container"]);
  /** The prepared sandbox, once there is one: its guest daemon runs. */
  const warm = async () => {
    for (;;) {
      const taken = opened.map(idOf);
      const [found] = (await containers()).filter(({ Id }) => !taken.some((id) => Id.startsWith(id)));
      if (found !== undefined) {
        // It may not have been started yet.
        const { Processes } = await engine
          .getContainer(found.Id)
          .top()
          .catch(() => ({ Processes: [] as string[][] }));
        if (Processes.flat().some((word: string) => word.includes("bridge.cjs"))) return found;
      }
      await after(50);
    }
  };
  const say = async (sandbox: RemoteSandbox, script: string) =>
    (await runToEnd(sandbox, { argv: ["/bin/sh", "-c", script], env: { PATH: "/usr/bin:/bin" } })).stdout;

  it("serve one session, which finds nothing of an earlier one", async () => {
    const first = await open();
    await first.writeFiles([{ path: `${first.workspace}/mine`, content: "secret-of-one" }]);
    await say(first, "echo secret-of-one > /tmp/left; echo secret-of-one > /var/tmp/left; true");
    const waiting = await warm();
    // No other runner's reaper removes it while its runner lives; one of a dead runner is found by its labels.
    expect(ownershipOf(waiting.Labels)).toMatchObject({
      deployment,
      session: expect.stringMatching(/^warm-/),
    });
    // Once it is ready, the next session gets it.
    await after(3_000);
    const second = await open();
    expect(waiting.Id.startsWith(idOf(second))).toBe(true);
    expect(idOf(second)).not.toBe(idOf(first));
    const seen = await say(
      second,
      'find "$PWD" /tmp /var/tmp /dev/shm -mindepth 1 -type f; grep -rs secret-of-one "$PWD" /tmp; env',
    );
    expect(seen).not.toContain("secret-of-one");
    expect(seen).not.toContain("mine");
    expect(await say(second, "cat /proc/[0-9]*/environ")).not.toContain("secret-of-one");
    await first.close();
    // A closed sandbox is gone, and no session gets it again.
    await expect(engine.getContainer(idOf(first)).inspect()).rejects.toMatchObject({ statusCode: 404 });
  });

  it("let in what the boundary of their session lists", async () => {
    await open({ ...closed, inbound: [4_000] });
    const waiting = await warm();
    await after(3_000);
    const sandbox = await open({ ...closed, inbound: [4_001] });
    expect(waiting.Id.startsWith(idOf(sandbox))).toBe(true);
    const server = `const { createServer } = require("node:net");
      const serve = (port, then) => createServer((socket) => socket.end("here")).listen(port, then);
      serve(4000, () => serve(4001, () => console.log("listening")));`;
    const env = { PATH: sandbox.image?.searchPath ?? "" };
    const started = await sandbox.spawn({ argv: ["node", "-e", server], env, role: "agent" });
    await started.stdout.getReader().read();
    expect(await text((await sandbox.connect?.(4_001)) ?? Readable.from([]))).toBe("here");
    await expect(sandbox.connect?.(4_000)).rejects.toThrow("Port 4000 isn't open");
  });

  it("are by default one, from the second session on, and none for a remote engine", async () => {
    const { prewarm: _none, ...settings } = settingsFor("runc", dataFolder);
    await backend.close();
    const config = configSchema.parse({ ...settings, deployment });
    backend = new DockerSandbox(config);
    await open();
    // What prepares one would have begun by then.
    await after(1_000);
    expect(await containers()).toHaveLength(1);
    await open();
    const waiting = await warm();
    await after(1_000);
    expect(await containers()).toHaveLength(3);
    expect(waiting.Names[0]).toMatch(/^\/ambit-warm-/);
    expect(preparedBy(config)).toBe(1);
    expect(preparedBy(configSchema.parse({ engine: "tcp://engine.test:2375" }))).toBe(0);
  });

  it("serve only the boundary that they were made for, and number no more than `prewarm`", async () => {
    await open(closed);
    await warm();
    await after(500);
    const limited = await open({ ...closed, resources: { memoryMb: 128 } });
    const { HostConfig } = await engine.getContainer(idOf(limited)).inspect();
    expect(HostConfig.Memory).toBe(128 * 1024 * 1024);
    // The one of the earlier boundary is removed, and one of this boundary is made.
    const prepared = async () => {
      const taken = opened.map(idOf);
      const found = (await containers()).filter(({ Id }) => !taken.some((id) => Id.startsWith(id)));
      const inspected = found.map(({ Id }) =>
        engine
          .getContainer(Id)
          .inspect()
          .catch(() => undefined),
      );
      return (await Promise.all(inspected)).map((one) => one?.HostConfig.Memory);
    };
    await expect.poll(prepared, { timeout: 20_000 }).toEqual([128 * 1024 * 1024]);
    await after(1_000);
    expect(await prepared()).toEqual([128 * 1024 * 1024]);
  });

  it("aren't used after they were stopped or their limits were changed", async () => {
    await open();
    const stopped = await warm();
    await engine.getContainer(stopped.Id).kill();
    await after(500);
    const next = await open();
    expect(stopped.Id.startsWith(idOf(next))).toBe(false);
    expect(await say(next, "echo up")).toBe("up\n");

    const changed = await warm();
    await after(500);
    await engine.getContainer(changed.Id).update({ PidsLimit: 3_000 });
    const another = await open();
    expect(changed.Id.startsWith(idOf(another))).toBe(false);
    expect(await say(another, "echo up")).toBe("up\n");
  });
});
