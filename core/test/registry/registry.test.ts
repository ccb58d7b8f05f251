import "reflect-metadata";
import { proofsOf } from "@ambit/fakes/capabilities";
import { FakeDelivery } from "@ambit/fakes/delivery";
import { FakeExecutor } from "@ambit/fakes/executor";
import { FakeGateway } from "@ambit/fakes/gateway";
import { ScriptedHarness } from "@ambit/fakes/harness";
import { recordingLog } from "@ambit/fakes/log";
import { FakeSandboxBackend } from "@ambit/fakes/sandbox-backend";
import { FakeToolSource } from "@ambit/fakes/tool-source";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { PluginLoadFailed } from "../../src/errors.js";
import { type ActorKinds, definePlugin, type Offers, type Plugin, secret } from "../../src/plugin/index.js";
import { type PluginEntry, Registry } from "../../src/registry/index.js";

const settings = { timeoutMs: 5_000, maxAgeMs: 60_000, retryMs: 15_000 };

function plugin(
  name: string,
  register: Plugin["register"] = () => {},
  config: z.ZodType = z.strictObject({}),
) {
  return definePlugin({ name, api: 1, config, register });
}

function offering<Kind extends keyof ActorKinds>(name: string, kind: Kind, ...actors: Offers[Kind][]) {
  return plugin(name, (registrar) => {
    for (const actor of actors) registrar.add(kind, actor);
  });
}

/** A plugin as JavaScript can write it, whatever the types say. */
function changed(given: Plugin, change: object): Plugin {
  return Object.assign({ ...given }, change);
}

function load(entries: readonly PluginEntry[], packages: Readonly<Record<string, unknown>> = {}) {
  const importPlugin = async (name: string) => {
    if (!(name in packages)) throw new Error(`Cannot find package '${name}'`);
    return packages[name];
  };
  return Registry.load(entries, importPlugin, settings, recordingLog());
}

async function failuresOf(entries: readonly PluginEntry[], packages?: Readonly<Record<string, unknown>>) {
  try {
    await load(entries, packages);
  } catch (error) {
    if (error instanceof PluginLoadFailed)
      return error.failures.map(({ plugin: name, reason }) => [name, reason]);
    throw error;
  }
  return [];
}

describe("loading", () => {
  test("says what a plugin in JavaScript adds wrongly", async () => {
    const adding = (name: string, kind: string, offer: object) =>
      plugin(name, ({ add }) => Reflect.apply(add, undefined, [kind, offer]));
    const incomplete = { name: "x", site: "runner", touches: () => [], gaps: () => [] };
    const error = await load([
      adding("unknown", "executer", incomplete),
      adding("lacking", "executor", incomplete),
    ]).catch((thrown: unknown) => thrown);
    if (!(error instanceof PluginLoadFailed)) throw error;
    expect(error.failures.map(({ reason, fix }) => `${reason}: ${fix}`)).toEqual([
      expect.stringMatching(
        /adds a 'executer', and there is no such kind: a plugin adds one of sandbox, executor, .*corrects/,
      ),
      expect.stringMatching(
        /its executor 'x' isn't one: claims is required: a list; probe is required: a method; kind is .*; execute is required: a method: .*corrects what register adds/,
      ),
    ]);
  });

  test.each<[kind: keyof Offers, offer: object, change: object, problem: string]>([
    ["sandbox", new FakeSandboxBackend(), { open: undefined }, "open is required: a method"],
    ["sandbox", new FakeSandboxBackend(), { site: "runner" }, 'site must be "sandbox"'],
    ["sandbox", new FakeSandboxBackend(), { hides: true }, "hides must be a method"],
    ["sandbox", new FakeSandboxBackend(), { takeover: {} }, "takeover.takeOver is required: a method"],
    ["sandbox", new FakeSandboxBackend(), { touches: () => ["disk"] }, "[0] must be one of"],
    ["executor", new FakeExecutor(), { execute: "run" }, "execute must be a method"],
    ["executor", new FakeExecutor(), { claims: ["network.Deny"] }, 'did you mean "network.deny"?'],
    [
      "executor",
      new FakeExecutor(),
      { site: "browser" },
      'site must be one of "sandbox", "runner", "caller"',
    ],
    ["executor", new FakeExecutor(), { name: "" }, "name must not be empty"],
    ["delivery", new FakeDelivery(), { publish: undefined }, "publish is required: a method"],
    ["toolSource", new FakeToolSource(), { connect: 1 }, "connect must be a method"],
    ["toolSource", new FakeToolSource(), { connection: "tcp" }, 'connection must be one of "http", "stdio"'],
    ["harness", new ScriptedHarness(new FakeDelivery()), { start: undefined }, "start is required: a method"],
    [
      "harness",
      new ScriptedHarness(new FakeDelivery()),
      { prewarm: [], prepare: undefined },
      "prepare is required",
    ],
    ["gateway", new FakeGateway(), { open: undefined }, "open is required: a method"],
    ["gateway", new FakeGateway(), { unpriced: [] }, "unpriced must be a method"],
    ["observer", { name: "o", observe: () => undefined }, { observe: undefined }, "observe is required"],
    ["observer", { name: "o", observe: () => undefined }, { logged: {} }, "logged must be a method"],
    ["store", { name: "s", open: () => undefined }, { open: undefined }, "open is required: a method"],
    ["blobs", { name: "b", open: () => undefined }, { name: 1 }, "name must be a string"],
    ["dialect", { name: "d", keys: {}, translate: () => undefined }, { keys: undefined }, "keys is required"],
    ...(
      [
        [{ "": { model: z.string().optional() } }, "`model` is a field of requests already"],
        [{ nowhere: { a: z.string().optional() } }, "`nowhere.a` is in no object of the contract"],
        [{ "messages[]": { a: z.string() } }, "`messages[].a` isn't optional"],
        [{ "": { a: secret(z.string()).optional() } }, "`a` carries a credential"],
        [{ "": { a: z.strictObject({ apiKey: z.string() }).optional() } }, "`a.apiKey` carries a credential"],
      ] as const
    ).map(([fields, problem]): [keyof Offers, object, object, string] => [
      "dialect",
      { name: "d", keys: {}, translate: () => undefined },
      { fields },
      problem,
    ]),
    ["door", { name: "d" }, { name: "a b" }, "name must be letters, digits and hyphens"],
    ["door", { name: "d" }, { stdio: {} }, "stdio must be a method"],
    [
      "door",
      { name: "d", routes: [{ method: "GET", path: "/d/x", summary: "s", handle: () => undefined }] },
      { name: "other" },
      "routes[0].path must be /other, or begin with /other/",
    ],
    [
      "toolPolicy",
      { name: "p", issues: () => [], forRun: () => undefined },
      { forRun: {} },
      "forRun must be a method",
    ],
  ])("a %s isn't loaded without its whole interface: %o", async (kind, offer, change, problem) => {
    const offered = (given: object) =>
      plugin("whole", ({ add }) => Reflect.apply(add, undefined, [kind, given]));
    const members = Object.getOwnPropertyNames(Object.getPrototypeOf(offer));
    const copy = Object.assign(
      Object.fromEntries(members.map((name) => [name, Reflect.get(offer, name)])),
      offer,
    );
    expect(await failuresOf([offered(copy)])).toEqual([]);
    const failures = await failuresOf([offered({ ...copy, ...change })]);
    expect(failures).toEqual([["whole", expect.stringContaining(problem)]]);
  });

  test("all that is wrong with all offers of a plugin is reported together", async () => {
    const executor = new FakeExecutor();
    const failures = await failuresOf([
      plugin("many", ({ add }) => {
        add("executor", Object.assign(new FakeExecutor(), { claims: ["network"], site: 1 }));
        Reflect.apply(add, undefined, ["delivery", undefined]);
        add("executor", executor);
      }),
      offering("other", "executor", executor),
    ]);
    expect(failures).toEqual([
      ["many", expect.stringMatching(/executor 'callback' isn't one: site .*; claims\[0\] must be one of/)],
      ["many", expect.stringContaining("its delivery isn't one")],
      ["other", expect.stringContaining("already offers")],
    ]);
  });

  test("a plugin as itself, by name, with a config, whose defaults are filled in", async () => {
    const seen: unknown[] = [];
    const config = z.strictObject({ size: z.int().default(7) });
    const named = (name: string) => plugin(name, (_registrar, given) => seen.push([name, given]), config);
    const registry = await load(
      [named("a"), "b", { use: "c", config: { size: 1 } }, { use: named("d"), config: { size: 2 } }],
      { b: named("b"), c: named("c") },
    );
    expect(seen).toEqual([
      ["a", { size: 7 }],
      ["b", { size: 7 }],
      ["c", { size: 1 }],
      ["d", { size: 2 }],
    ]);
    expect(registry.plugins.map(({ name }) => name)).toEqual(["a", "b", "c", "d"]);
    expect(registry.plugins[0]?.configSchema).toMatchObject({
      type: "object",
      properties: { size: { type: "integer", default: 7 } },
      additionalProperties: false,
    });
  });

  test("all failures of all plugins are reported at once, each with its fix", async () => {
    const throws = () => {
      throw new Error("no disk");
    };
    const same = plugin("same");
    const entries: PluginEntry[] = [
      "missing",
      "no-plugin",
      {
        use: plugin("wrong-config", () => {}, z.strictObject({ size: z.int() })),
        config: { size: "x", more: 1 },
      },
      plugin("throws", throws),
      changed(plugin("newer"), { api: 2 }),
      offering("one", "sandbox", new FakeSandboxBackend({ name: "local" })),
      offering("two", "sandbox", new FakeSandboxBackend({ name: "local" })),
      same,
      same,
      "same-name",
    ];
    const error = await load(entries, { "no-plugin": { name: "x" }, "same-name": plugin("same") }).catch(
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof PluginLoadFailed)) throw error;
    expect(error.failures.map(({ plugin: name, reason }) => `${name}: ${reason}`)).toEqual([
      "missing: can't be imported (Cannot find package 'missing')",
      "no-plugin: its default export is no plugin",
      expect.stringMatching(
        /^wrong-config: its config: size .*; more is not a known setting: known are size/,
      ),
      "throws: register threw (no disk)",
      "newer: was written for plugin api 2, this is 1",
      "same: is listed twice",
      expect.stringMatching(/^same-name: has the same name as another plugin: .* is called 'same' too$/),
      "two: offers the sandbox 'local', which one already offers",
    ]);
    for (const { fix } of error.failures) expect(fix).not.toBe("");
    for (const { plugin: name } of error.failures) expect(error.message).toContain(name);
  });

  test("one plugin is listed twice with configs that name two actors", async () => {
    const named = definePlugin({
      name: "named",
      api: 1,
      config: z.strictObject({ name: z.string().default("local"), size: z.int().default(1) }),
      register: (registrar, { name }) => registrar.add("sandbox", new FakeSandboxBackend({ name })),
    });
    const registry = await load([named, { use: named, config: { name: "other" } }]);
    expect(registry.plugins.map(({ name }) => name)).toEqual(["named"]);
    expect((await registry.candidates()).sandboxes.map(({ actor }) => actor.name)).toEqual([
      "local",
      "other",
    ]);
    await expect(load([named, { use: named, config: { size: 2 } }])).rejects.toThrow(
      "named: offers the sandbox 'local', which named already offers",
    );
  });

  const delivery = new FakeDelivery();
  test.each<[what: string, first: Plugin, second: Plugin, collides: boolean]>([
    [
      "executors of one kind, whatever they are called",
      offering("a", "executor", new FakeExecutor({ kind: "code" })),
      offering("b", "executor", Object.assign(new FakeExecutor({ kind: "code" }), { name: "other" })),
      true,
    ],
    [
      "executors of two kinds",
      offering("a", "executor", new FakeExecutor()),
      offering("b", "executor", new FakeExecutor({ kind: "code" })),
      false,
    ],
    [
      "harnesses of one id",
      offering("a", "harness", new ScriptedHarness(delivery)),
      offering("b", "harness", new ScriptedHarness(delivery)),
      true,
    ],
    [
      "tool sources for one connection",
      offering("a", "toolSource", new FakeToolSource()),
      offering("b", "toolSource", Object.assign(new FakeToolSource(), { name: "other" })),
      true,
    ],
    [
      "one name in two kinds",
      offering("a", "sandbox", new FakeSandboxBackend({ name: "x" })),
      offering("b", "executor", new FakeExecutor({ kind: "x" })),
      false,
    ],
  ])("%s", async (_what, first, second, collides) => {
    expect(await failuresOf([first, second])).toHaveLength(collides ? 1 : 0);
  });

  test("a config that isn't a zod 4 schema, or is asynchronous, is a failure like any other", async () => {
    const asynchronous = z.strictObject({}).refine(async () => true);
    const broken = changed(plugin("broken"), { config: { safeParse: "no" } });
    expect(await failuresOf([plugin("waits", () => {}, asynchronous), broken])).toEqual([
      ["waits", expect.stringContaining("its config is no schema that can be used")],
      ["broken", expect.stringContaining("its config is no schema that can be used")],
    ]);
  });

  test("an asynchronous register is refused, and a later rejection doesn't end the process", async () => {
    const waits = async () => {
      throw new Error("too late");
    };
    expect(await failuresOf([plugin("waits", waits)])).toEqual([["waits", "register returned a promise"]]);
  });

  test("a registration after register has returned throws", async () => {
    let offerLate = () => {};
    const registry = await load([
      plugin("late", (registrar) => {
        offerLate = () => registrar.add("sandbox", new FakeSandboxBackend());
      }),
    ]);
    expect(offerLate).toThrow("Plugin 'late' offers the sandbox 'fake' after it has registered.");
    expect(registry.knownCandidates().sandboxes).toEqual([]);
  });
});

describe("the candidates", () => {
  test("are in configured order, and empty if nothing is loaded", async () => {
    const sandboxes = ["c", "a", "b"].map((name) => new FakeSandboxBackend({ name }));
    const registry = await load(
      sandboxes.map((sandbox) => offering(`plugin-${sandbox.name}`, "sandbox", sandbox)),
    );
    const candidates = await registry.candidates();
    expect(candidates.sandboxes.map(({ actor }) => actor.name)).toEqual(["c", "a", "b"]);
    expect(candidates).toMatchObject({ executors: [], deliveries: [], harnesses: [], toolSources: [] });
  });

  test("of a run that names its sandbox don't wait for the probe of another", async () => {
    const hanging = new FakeSandboxBackend({ name: "hanging" });
    const registry = await load([
      offering("a", "sandbox", Object.assign(hanging, { probe: () => new Promise<never>(() => {}) })),
      offering("b", "sandbox", new FakeSandboxBackend({ name: "there" })),
    ]);
    const { sandboxes } = await registry.candidates("there");
    expect(sandboxes.map(({ findings }) => findings.size > 0)).toEqual([false, true]);
    expect((await registry.candidates("unknown")).sandboxes).toHaveLength(2);
  });

  test("two registries in one process share nothing", async () => {
    const one = await load([offering("a", "sandbox", new FakeSandboxBackend())]);
    const other = await load([]);
    expect((await one.candidates()).sandboxes).toHaveLength(1);
    expect((await other.candidates()).sandboxes).toEqual([]);
  });

  test("before the first probe nothing is proven", async () => {
    const registry = await load([offering("a", "sandbox", new FakeSandboxBackend())]);
    expect(registry.knownCandidates().sandboxes[0]?.findings.size).toBe(0);
    await registry.candidates();
    expect(registry.knownCandidates().sandboxes[0]?.findings.size).toBeGreaterThan(0);
  });

  test("describe lists each actor's plugin, claims and findings, even for two with one name", async () => {
    const delivery = new FakeDelivery();
    const named = (id: string) => Object.assign(new ScriptedHarness(delivery, { id }), { name: "agent" });
    const registry = await load([
      offering("sandboxes", "sandbox", new FakeSandboxBackend({ claims: ["network.deny"] })),
      offering("harnesses", "harness", named("one"), named("two")),
    ]);
    const described = await registry.describe();
    expect(described.map(({ plugin: from, kind, name }) => [from, kind, name])).toEqual([
      ["sandboxes", "sandbox", "fake"],
      ["harnesses", "harness", "agent"],
      ["harnesses", "harness", "agent"],
    ]);
    expect(described[0]).toMatchObject({
      site: "sandbox",
      claims: ["network.deny"],
      findings: proofsOf(["network.deny"]),
      probedAt: expect.stringMatching(/^20\d\d-/),
    });
  });
});
