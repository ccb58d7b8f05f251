// needs: docker
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runToEnd } from "@ambit/backend-kit";
import { type Sandbox, SandboxFailed } from "@ambit/core/plugin";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import Docker from "dockerode";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { describeUnless } from "../../../scripts/vitest/skip-without.ts";
import { configSchema, DockerSandbox } from "../src/index.js";
import { changingEngine, type EngineChange } from "./mutation/changing-engine.js";
import { scope, settingsFor, specOf } from "./support/on-engine.js";

describeUnless(unavailableReason())("on a real engine", () => {
  const closed = {
    network: { mode: "off", rules: [] },
    filesystem: { mode: "workspace", readable: [], writable: [], denied: [] },
  } as const;
  const freshName = () => randomBytes(32).toString("hex");
  const noSignal = new AbortController().signal;
  let dataFolder: string;
  beforeAll(async () => {
    dataFolder = await mkdtemp(join(tmpdir(), "ambit-docker-layers-"));
  });
  afterAll(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));

  /** A deployment's backend, and its volumes, which are removed after the test. */
  function deploymentWith(layers: object = {}, more: object = {}) {
    const deployment = `layers-${randomBytes(4).toString("hex")}`;
    const backend = new DockerSandbox(
      configSchema.parse({ ...settingsFor("runc", dataFolder), deployment, layers, ...more }),
    );
    const docker = new Docker({ socketPath: dockerEngine().socket });
    const volumes = async () => {
      const { Volumes } = await docker.listVolumes({
        filters: { label: [`ambit-deployment=${deployment}`] },
      });
      return Volumes.map(({ Name }) => Name).sort();
    };
    onTestFinished(async () => {
      for (const name of await volumes()) await docker.getVolume(name).remove();
    });
    const open = async (use: "begin" | "make", name: string, more: object = {}) => {
      const sandbox = await backend.open(specOf(closed, { layer: { use, name }, ...more }), scope);
      onTestFinished(() => sandbox.close());
      return sandbox;
    };
    const make = async (name: string) => {
      const sandbox = await open("make", name);
      await run(sandbox, "printf prepared > file");
      await sandbox.keepAsLayer?.();
    };
    return { backend, deployment, docker, volumes, open, make };
  }

  async function run(sandbox: Sandbox, line: string): Promise<string> {
    const { stdout, stderr } = await runToEnd(sandbox, {
      argv: ["/bin/sh", "-c", line],
      env: { PATH: "/usr/bin:/bin" },
      role: "agent",
    });
    return stdout + stderr;
  }

  it("leaves of a sandbox that began with a layer nothing but the layer", async () => {
    const { volumes, open, make } = deploymentWith();
    const name = freshName();
    await make(name);
    const before = await volumes();
    expect(before).toHaveLength(3);
    const sandbox = await open("begin", name);
    expect(await run(sandbox, "cat file; printf more > other")).toBe("prepared");
    expect((await volumes()).length).toBeGreaterThan(before.length);
    await sandbox.close();
    expect(await volumes()).toEqual(before);
  });

  it("leaves nothing of a layer whose sandbox was closed, or couldn't be opened", async () => {
    const { volumes, open } = deploymentWith();
    await (await open("make", freshName())).close();
    await expect(open("begin", freshName())).rejects.toThrow("were removed");
    const memoryMb = 1; // Less than an engine accepts.
    const resources = { memoryMb };
    await expect(
      open("make", freshName(), { boundary: specOf({ ...closed, resources }).boundary }),
    ).rejects.toThrow(SandboxFailed);
    expect(await volumes()).toEqual([]);
  });

  it("removes the oldest layers, and the files of one in use only once it isn't", async () => {
    const { backend, volumes, open, make } = deploymentWith({ max: 1 });
    const [first, second, third] = [freshName(), freshName(), freshName()];
    const has = (name: string) => backend.layers.has(name, noSignal);
    await make(first);
    const using = await open("begin", first);
    await nextSecond();
    await make(second);
    expect([await has(first), await has(second)]).toEqual([false, true]);
    expect(await run(using, "cat file; printf more >> file; cat file")).toBe("preparedpreparedmore");
    await using.close();
    await nextSecond();
    await make(third);
    expect([await has(second), await has(third)]).toEqual([false, true]);
    // The first one's files have no layer, and may be those of one that is being made.
    expect((await volumes()).length).toBe(3 + 2);
  });

  it("removes old layers although no other is made", async () => {
    const { deployment, volumes, make } = deploymentWith();
    await make(freshName());
    await nextSecond();
    const open = async (layers: object) => {
      const { backend } = deploymentWith(layers, { deployment });
      await (await backend.open(specOf(closed), scope)).close();
    };
    await open({ maxAgeDays: 1 });
    expect(await volumes()).toHaveLength(3);
    await open({ maxAgeDays: 1e-6 });
    await vi.waitFor(async () => expect(await volumes()).toEqual([]), { timeout: 10_000 });
  });

  it("keeps a project's layer, however many another project makes", async () => {
    const { backend, make } = deploymentWith({ max: 2 });
    const of = (project: string) => `${project.repeat(16)}${freshName().slice(16)}`;
    const names = [of("a"), of("b"), of("b")];
    for (const name of names) {
      await make(name);
      await nextSecond();
    }
    const kept = await Promise.all(names.map((name) => backend.layers.has(name, noSignal)));
    expect(kept).toEqual([true, false, true]);
  });

  it("makes a layer again whose files somebody removed", async () => {
    const { backend, docker, volumes, open, make } = deploymentWith();
    const name = freshName();
    await make(name);
    for (const part of await volumes()) if (!part.endsWith(name)) await docker.getVolume(part).remove();
    expect(await backend.layers.has(name, noSignal)).toBe(false);
    await make(name);
    expect(await run(await open("begin", name), "cat file")).toBe("prepared");
  });

  it("leaves no volume of a sandbox whose container somebody removed", async () => {
    const { docker, volumes, open, make } = deploymentWith({}, { reapMinutes: 0.01 });
    const name = freshName();
    await make(name);
    const ofLayer = await volumes();
    const sandbox = await open("begin", name);
    const container = docker.getContainer(String(sandbox.evidence["docker.container"]));
    const { Mounts } = await container.inspect();
    await container.remove({ force: true, v: false });
    await sandbox.close();
    const others = Mounts.flatMap(({ Name = "" }) => (ofLayer.includes(Name) || Name === "" ? [] : [Name]));
    // The bridge's, and the overlays of workspace and home.
    expect(others).toHaveLength(3);
    const left = async () => {
      const all = (await docker.listVolumes()).Volumes.map((volume) => volume.Name);
      return others.filter((one) => all.includes(one));
    };
    await expect.poll(left, { timeout: 10_000 }).toEqual([]);
    expect(await volumes()).toEqual(ofLayer);
  });

  it("opens no sandbox with a layer that is removed meanwhile", async () => {
    const { backend, docker, volumes, open, make } = deploymentWith();
    const name = freshName();
    await make(name);
    const [layer] = (await volumes()).filter((one) => one.endsWith(name));
    await docker.getVolume(layer ?? "").remove();
    expect(await backend.layers.has(name, noSignal)).toBe(false);
    await expect(open("begin", name)).rejects.toThrow("were removed");
  });

  it("opens no sandbox whose engine mounts the layer that it holds writable", async () => {
    const socket = join(dataFolder, "changing.sock");
    const change: EngineChange["change"] = ({ HostConfig, ...order }) => {
      const Mounts = HostConfig?.Mounts?.map((mount) => ({ ...mount, ReadOnly: false }));
      return { ...order, HostConfig: { ...HostConfig, Mounts } };
    };
    const engine = changingEngine(dockerEngine().socket, { change, isConcealed: false });
    await engine.listen(socket);
    onTestFinished(() => engine.close());
    const { open, make } = deploymentWith({}, { engine: `unix://${socket}` });
    const name = freshName();
    await make(name);
    await expect(open("begin", name)).rejects.toThrow(
      /asked to mount \/opt\/ambit-layer\/(workspace|home) read-only, and mounted it writable/,
    );
  });

  it("keeps no layer for a workspace with a limit, which is in memory, nor where none may be kept", () => {
    const limited = specOf({ ...closed, resources: { diskMb: 100 } }).boundary;
    const { backend } = deploymentWith();
    expect(backend.layers.supports(limited)).toBe(false);
    expect(backend.layers.supports(specOf(closed).boundary)).toBe(true);
    expect(deploymentWith({ max: 0 }).backend.layers.supports(specOf(closed).boundary)).toBe(false);
  });

  /** Takes a lease on each file of its name that its user reaches, outside of its own workspace, says how many, and keeps them. */
  const leasing = `
    use Fcntl; use IO::Handle; use File::Find; $SIG{IO} = "IGNORE"; my @held;
    find({ no_chdir => 1, preprocess => sub { $File::Find::dir =~ m{^/(proc|sys|dev)} ? () : @_ }, wanted => sub {
      return unless /\\/file$/ && !m{^$ENV{PWD}/};
      my $file; open($file, "<", $_) and fcntl($file, 1024, F_WRLCK) and push @held, $file;
    } }, "/");
    STDOUT->autoflush(1); print "leases: " . @held . "\\n"; sleep 600;`;

  it("lets no sandbox have a lease on a layer's file, which would hold up others that open it", async () => {
    const { open, make } = deploymentWith();
    const name = freshName();
    await make(name);
    const [one, other] = [await open("begin", name), await open("begin", name)];
    const holder = await one.spawn({
      argv: ["perl", "-e", leasing],
      env: { PATH: "/usr/bin:/bin", PWD: one.workspace },
      cwd: one.workspace,
      role: "agent",
    });
    onTestFinished(() => holder.kill());
    const reader = holder.stdout[Symbol.asyncIterator]();
    const { value } = await reader.next();
    // Opened like this, a file of which another has a lease is an error at once.
    const opening = `use Fcntl; print sysopen(F, "file", O_RDONLY | O_NONBLOCK) ? <F> : "refused: $!"`;
    expect(await run(other, `perl -e '${opening}'`)).toBe("prepared");
    expect(String(Buffer.from(value ?? []))).toBe("leases: 0\n");
  });

  /** The engine says in whole seconds when a volume was made. */
  const nextSecond = () => new Promise((resolve) => setTimeout(resolve, 1_001 - (Date.now() % 1_000)));
});
