import { randomBytes } from "node:crypto";
import { type Sandbox, SandboxFailed } from "@ambit/core/plugin";
import { Daytona } from "@daytona/sdk";
import { describe, expect, it, onTestFinished } from "vitest";
import { configSchema, DaytonaSandbox } from "../src/index.js";
import { snapshotName } from "../src/layers/layer-snapshots.js";
import { closed, configOf, unlimited } from "./support/boundaries.js";
import {
  backendFor,
  configFor,
  expectNothingLeft,
  logged,
  open,
  printed,
  specOf,
  useLoopback,
} from "./support/loopback.js";

const freshName = () => randomBytes(32).toString("hex");
const noSignal = new AbortController().signal;

describe("layers of an organisation", () => {
  const digest = `registry.example.test/agents@sha256:${"0".repeat(64)}`;
  it.each([
    ["a named snapshot", { snapshot: "agents" }, {}, true],
    ["an image by its digest", { image: digest }, {}, true],
    ["an image whose tag may move", { image: "node:22" }, {}, false],
    ["the organisation's own snapshot, which has no name here", {}, {}, false],
    ["none to be kept", { snapshot: "agents", layers: { max: 0 } }, {}, false],
    // What is made from a snapshot has that one's size.
    ["a limit of memory", { image: digest }, { memoryMb: 1_024 }, false],
    ["a limit of processors", { image: digest }, { cpus: 1 }, false],
    ["a limit of the disk", { image: digest }, { diskMb: 1_024 }, false],
  ])("with %s", (_case, config, resources, supported) => {
    const { layers } = new DaytonaSandbox(configOf(config));
    expect(layers.supports({ ...closed, resources })).toBe(supported);
  });

  it("have another name where their files would be in another place, or of another user", () => {
    const name = freshName();
    const of = (config: object) => snapshotName(configOf(config), name);
    const names = [
      of({}),
      of({ target: "eu" }),
      of({ bridge: { folder: "/opt/ambit" } }),
      of({ bridge: { firstUser: 70_000 } }),
    ];
    expect(new Set(names).size).toBe(names.length);
    expect(of({})).toMatch(new RegExp(`^ambit-layer-ambit-${name.slice(0, 16)}-[0-9a-f]{40}$`));
  });
});

describe("on a loopback Daytona", { timeout: 60_000 }, () => {
  const daytona = useLoopback();

  const made = () =>
    daytona()
      .snapshots()
      .filter(({ isOfSandbox }) => isOfSandbox)
      .map(({ name }) => name);

  async function make(backend: DaytonaSandbox, name: string): Promise<void> {
    const sandbox = await open(backend, { layer: { use: "make", name } });
    await written(sandbox, "prepared");
    await sandbox.keepAsLayer?.();
  }

  const written = (sandbox: Sandbox, text: string) => printed(sandbox, `printf ${text} > file`);
  const begin = (backend: DaytonaSandbox, name: string) => open(backend, { layer: { use: "begin", name } });

  /** Removes the layers afterwards. */
  async function deployment(overrides: object = {}) {
    const name = `d${randomBytes(4).toString("hex")}`;
    const config = await configFor(daytona(), { deployment: name, ...overrides });
    const sdk = new Daytona({ apiKey: config.apiKey, apiUrl: config.apiUrl, target: "us" });
    onTestFinished(async () => {
      for (const snapshot of made()) await sdk.snapshot.delete(snapshot);
      await sdk[Symbol.asyncDispose]();
    });
    return { backend: new DaytonaSandbox(config), config, sdk };
  }

  it("keeps a sandbox's files as a snapshot, and nothing else of it", async () => {
    const { backend, config, sdk } = await deployment();
    const name = freshName();
    expect(await backend.layers.has(name, noSignal)).toBe(false);
    await make(backend, name);
    await expectNothingLeft(daytona());
    expect(made()).toEqual([snapshotName(config, name)]);
    const plain = await sdk.create({ snapshot: snapshotName(config, name) });
    const { result } = await plain.process.executeCommand("ls -A /tmp/ambit/session");
    expect(result.trim().split("\n")).toEqual(["home", "layer", "workspace"]);
    await plain.delete();
    const sandbox = await begin(backend, name);
    expect(await printed(sandbox, "cat file")).toBe("prepared");
    expect(sandbox.evidence["daytona.layer"]).toBe(name.slice(0, 12));
    await sandbox.close();
    await expectNothingLeft(daytona());
    expect(await backend.layers.has(name, noSignal)).toBe(true);
  });

  it("knows the programs of new sandboxes by the snapshot's id", async () => {
    const { backend, sdk } = await deployment();
    const { id } = await sdk.snapshot.get("root");
    expect(await backend.layers.system(noSignal)).toBe(`snapshot ${id}`);
    const missing = await backendFor(daytona(), { snapshot: "missing" });
    expect(await missing.layers.system(noSignal)).toBeUndefined();
  });

  it("removes the oldest of too many, and none of another deployment", async () => {
    const { backend } = await deployment({ layers: { max: 1 } });
    const other = await deployment();
    const [first, second, others] = [freshName(), freshName(), freshName()];
    await make(other.backend, others);
    await make(backend, first);
    await make(backend, second);
    const has = (one: DaytonaSandbox, name: string) => one.layers.has(name, noSignal);
    expect([await has(backend, first), await has(backend, second)]).toEqual([false, true]);
    expect(await has(other.backend, others)).toBe(true);
  });

  it("removes old layers although no other is made", async () => {
    const { backend, config } = await deployment();
    await make(backend, freshName());
    expect(made()).toHaveLength(1);
    const openWith = async (maxAgeDays: number) => {
      const layers = { ...config.layers, maxAgeDays };
      await (await open(new DaytonaSandbox({ ...config, layers }))).close();
    };
    await openWith(1);
    expect(made()).toHaveLength(1);
    await openWith(1e-9);
    await expect.poll(made).toEqual([]);
  });

  it("keeps a project's layer, however many another project makes", async () => {
    const { backend } = await deployment({ layers: { max: 2 } });
    const of = (project: string) => `${project.repeat(16)}${freshName().slice(16)}`;
    const names = [of("a"), of("b"), of("b")];
    for (const name of names) await make(backend, name);
    const kept = await Promise.all(names.map((name) => backend.layers.has(name, noSignal)));
    expect(kept).toEqual([true, false, true]);
  });

  it("makes a layer again whose snapshot the platform has deactivated", async () => {
    const { backend, config } = await deployment();
    const name = freshName();
    await make(backend, name);
    daytona().faults.deactivateSnapshot(snapshotName(config, name));
    expect(await backend.layers.has(name, noSignal)).toBe(false);
    await expect(begin(backend, name)).rejects.toThrow(SandboxFailed);
    await make(backend, name);
    expect(await printed(await begin(backend, name), "cat file")).toBe("prepared");
  });

  it("begins with no layer whose files aren't those that were kept, and tries none for a while", async () => {
    const { backend, config, sdk } = await deployment();
    const name = freshName();
    // Such as one whose folder the platform doesn't keep.
    const foreign = await sdk.create({ snapshot: "root" });
    await foreign.process.executeCommand("mkdir -p /tmp/ambit/session/workspace /tmp/ambit/session/home");
    await foreign.createSnapshot(snapshotName(config, name));
    await foreign.delete();
    expect(backend.layers.supports(unlimited)).toBe(true);
    await expect(begin(backend, name)).rejects.toThrow("Daytona: beginning with a layer's files failed");
    expect(backend.layers.supports(unlimited)).toBe(false);
    await expectNothingLeft(daytona());
  });

  it.each([
    ["refuses", { status: 403, message: "Snapshot quota exceeded" }],
    ["has no such request", { status: 404, message: "Cannot POST" }],
  ])("says what the platform said that %s, and tries none for a while", async (_case, answer) => {
    const { backend } = await deployment();
    daytona().faults.answer({
      method: "POST",
      path: /^\/api\/sandbox\/[^/]+\/snapshot$/,
      ...answer,
      times: 9,
    });
    await expect(make(backend, freshName())).rejects.toThrow(answer.message);
    expect(backend.layers.supports(unlimited)).toBe(false);
    await expectNothingLeft(daytona());
    expect(made()).toEqual([]);
  });

  it("ends a sandbox that is closed before the platform has kept its files", async () => {
    const { backend } = await deployment();
    const sandbox = await open(backend, { layer: { use: "make", name: freshName() } });
    const posted = () =>
      daytona()
        .requests()
        .filter(({ url }) => url.endsWith("/snapshot")).length;
    const before = posted();
    const keeping = expect(sandbox.keepAsLayer?.()).rejects.toThrow("was closed before it was a layer");
    await expect.poll(posted).toBe(before + 1);
    await sandbox.close();
    await keeping;
    // A sandbox whose state changes can be deleted a little later.
    await expect.poll(() => daytona().sandboxes(), { timeout: 15_000 }).toEqual([]);
    expect(backend.layers.supports(unlimited)).toBe(true);
  });

  it("is kept although an earlier one can't be removed", async () => {
    const { backend } = await deployment({ layers: { max: 1 } });
    await make(backend, freshName());
    const name = freshName();
    const { log, lines } = logged();
    daytona().faults.answer({ method: "DELETE", path: /^\/api\/snapshots\//, status: 403 });
    const sandbox = await open(backend, { layer: { use: "make", name }, log });
    await sandbox.keepAsLayer?.();
    expect(lines.join()).toContain("snapshots of earlier environments couldn't be removed");
    expect(await backend.layers.has(name, noSignal)).toBe(true);
    expect(backend.layers.supports(unlimited)).toBe(true);
  });

  it("isn't given up for a response that the platform lost", async () => {
    const { backend } = await deployment();
    const name = freshName();
    await make(backend, name);
    daytona().faults.answer({
      method: "POST",
      path: /process\/execute$/,
      status: 502,
      afterwards: true,
      times: 2,
    });
    expect(await printed(await begin(backend, name), "cat file")).toBe("prepared");
  });

  it("leaves nothing where the sandbox couldn't be opened", async () => {
    const { backend } = await deployment();
    daytona().faults.answer({ method: "POST", path: /process\/execute$/, status: 400, times: 9 });
    const spec = specOf({ layer: { use: "make", name: freshName() } });
    await expect(backend.open(spec, { signal: noSignal, defer: () => undefined })).rejects.toThrow(
      SandboxFailed,
    );
    await expectNothingLeft(daytona());
  });
});

describe("on a platform that loses snapshots", { timeout: 60_000 }, () => {
  const daytona = useLoopback({ organization: { snapshots: "lost" } });

  it("says so, since the platform doesn't", async () => {
    const backend = await backendFor(daytona());
    const sandbox = await open(backend, { layer: { use: "make", name: freshName() } });
    await expect(sandbox.keepAsLayer?.()).rejects.toThrow(
      "Daytona made no snapshot of a sandbox (there is none): check the organisation's limit of snapshots",
    );
    expect(backend.layers.supports(unlimited)).toBe(false);
    await expectNothingLeft(daytona());
  });
});

it("has limits in its configuration", () => {
  expect(configSchema.parse({}).layers).toEqual({ max: 10, maxAgeDays: 8, timeoutMs: 300_000 });
});
