import { offerUnderWay } from "@ambit/core";
import { HarnessFailed, ModelFailed, SandboxFailed } from "@ambit/core/plugin";
import { FakeExecutor } from "@ambit/fakes/executor";
import { calls, done, forever, says } from "@ambit/fakes/harness";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createWorld, eventsOf } from "./fakes/world.js";

const tool = { name: "look_up", permission: "allow", callRef: "ref" };
const customTools = [tool];
const restricted = { sandboxPermission: { network: "off" } };

const unhandled: unknown[] = [];
const note = (reason: unknown) => unhandled.push(reason);
beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", note);
});
afterEach(async () => {
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});

describe("a failure of an actor ends the run, with the error code for the person who must act", () => {
  test.each([
    [
      "an error of the catalogue is the actor's own say",
      new SandboxFailed("no room"),
      "sandbox_failed",
      "no room",
    ],
    ["any other is its author's", new TypeError("secret detail"), "plugin_broke_contract", "Sandbox 'fake'"],
  ])("opening: %s", async (_what, error, code, message) => {
    const world = await createWorld({
      script: says("never"),
      sandbox: { onOpen: () => Promise.reject(error) },
    });
    const recorded = await world.run();
    expect(recorded.result).toMatchObject({ ok: false, failure: { code } });
    expect(recorded.result.error).toContain(message);
    expect(recorded.result.error).not.toContain("secret detail");
    expect(recorded.result.receipt).toBeUndefined();
    expect(eventsOf(recorded, "error")).toEqual([
      { type: "error", message: recorded.result.error, code, detail: recorded.result.errorDetail },
    ]);
    expect(recorded.failure?.code).toBe(code);
  });

  test("a sandbox that opens unconfined under a boundary", async () => {
    const world = await createWorld({ script: says("never"), sandbox: { confinement: "unconfined" } });
    expect((await world.run(restricted)).result.failure?.code).toBe("plugin_broke_contract");
    expect(world.harness.starts).toEqual([]);
    expect(world.sandbox.closed).toBe(1);
    // The control: without a boundary nothing has to confine it.
    expect((await world.run()).result).toMatchObject({ ok: true, receipt: { confinement: "unconfined" } });
  });

  test.each([
    [
      "writing files",
      { sandbox: { onWriteFiles: () => Promise.reject(new Error("disk")) } },
      "Sandbox 'fake'",
    ],
    ["starting", { harness: { onStart: () => Promise.reject(new Error("spawn")) } }, "Harness 'scripted'"],
  ])("%s", async (_what, options, who) => {
    const world = await createWorld({ script: says("never"), ...options });
    const { result } = await world.run({ harnessFiles: [{ path: "a", content: "b" }] });
    expect(result.failure?.code).toBe("plugin_broke_contract");
    expect(result.error).toContain(who);
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 1 });
  });

  test("publishing", async () => {
    const world = await createWorld({ script: says("never") });
    world.delivery.onPublish = () => Promise.reject(new Error("port taken"));
    const { result } = await world.run({ customTools });
    expect(result.failure?.code).toBe("plugin_broke_contract");
    expect(result.error).toContain("Delivery 'fake-delivery'");
  });

  test.each([
    ["the agent", new HarnessFailed("it crashed"), "harness_failed"],
    ["its model", new ModelFailed("quota", { retryable: true }), "model_failed"],
    ["its driver", new RangeError("bug"), "plugin_broke_contract"],
  ])("the turn: %s", async (_what, error, code) => {
    const world = await createWorld({
      script: async function* () {
        yield { type: "message_start", id: "m" };
        yield { type: "message_delta", id: "m", delta: "half a sen" };
        throw error;
      },
    });
    const recorded = await world.run();
    expect(recorded.result).toMatchObject({ ok: false, output: "half a sen", failure: { code } });
    expect(recorded.events.slice(-3).map(({ type }) => type)).toEqual(["message_end", "error", "done"]);
  });

  test("an agent that ends its turn without a done event", async () => {
    const world = await createWorld({
      script: async function* () {
        yield { type: "message", text: "and then" };
      },
    });
    expect((await world.run()).result.failure?.code).toBe("plugin_broke_contract");
  });

  test("an agent that never asks for its tools", async () => {
    const world = await createWorld({ script: says("I did without.") });
    const { result } = await world.run({ customTools });
    expect(result).toMatchObject({ ok: false, failure: { code: "harness_failed" } });
    expect(result.error).toContain("'ambit'");
  });

  test("an executor that throws: the agent gets a result, and the run ends", async () => {
    const answers: unknown[] = [];
    const executor = new FakeExecutor({ execute: () => Promise.reject(new Error("bug")) });
    const world = await createWorld({
      executors: [executor],
      script: async function* ({ tools }) {
        answers.push(await tools().call("look_up"));
        yield done;
      },
    });
    const { result } = await world.run({ customTools });
    expect(result.failure?.code).toBe("plugin_broke_contract");
    expect(answers).toEqual([
      { output: expect.stringContaining("failed on the runner's side"), isError: true },
    ]);
  });

  test.each([
    ["nothing", undefined],
    ["an unknown status", { status: "finished" }],
    ["no text", { status: "completed" }],
  ])("an executor that gives %s", async (_what, outcome) => {
    const executor = new FakeExecutor();
    Object.assign(executor, { execute: async () => outcome });
    const world = await createWorld({ executors: [executor], script: calls("look_up") });
    expect((await world.run({ customTools })).result.failure?.code).toBe("plugin_broke_contract");
  });

  test("a tool source that throws", async () => {
    const world = await createWorld({ script: calls("search", {}, { server: "docs" }) });
    world.toolSource.answer = () => Promise.reject(new Error("bug"));
    const connection = { type: "http", url: "https://docs.example/mcp" };
    const { result } = await world.run({
      mcpServers: [{ name: "docs", connection, policy: { permission: "allow" } }],
    });
    expect(result.failure?.code).toBe("plugin_broke_contract");
    expect(result.error).toContain("'docs'");
  });

  test("an executor that throws in prepare", async () => {
    const prepare = () => {
      throw new Error("bug");
    };
    const executor = new FakeExecutor({ prepare });
    const world = await createWorld({ script: says("never"), executors: [executor] });
    const { result } = await world.run({ customTools: [tool] });
    expect(result).toMatchObject({ ok: false, failure: { code: "plugin_broke_contract" } });
    expect(world.harness.closed).toBe(1);
  });

  test("an actor whose return values break the receipt", async () => {
    let planned = false;
    const world = await createWorld({
      script: says("done"),
      harness: {
        visibleCredentials: () => {
          if (planned) throw new Error("bug");
          return [];
        },
      },
    });
    const run = await world.admit({});
    planned = true;
    const { result, failure } = await world.tell(run);
    expect(result).toMatchObject({ ok: false, output: "done", failure: { code: "plugin_broke_contract" } });
    expect(failure?.code).toBe("plugin_broke_contract");
  });
});

describe("what an actor resolves with is checked before it is used", () => {
  const connection = { type: "http", url: "https://docs.example/mcp" };
  const mcpServers = [{ name: "docs", connection, policy: { permission: "allow" } }];

  test.each<
    [what: string, kind: "sandbox" | "delivery" | "toolSource" | "harness", method: string, message: string]
  >([
    ["a sandbox", "sandbox", "open", "workspace is required: a string"],
    ["a published server", "delivery", "publish", "url is required"],
    ["a publication", "toolSource", "connect", "tools is required: a list"],
    ["an agent", "harness", "start", "conversation is required: a string"],
  ])("%s", async (_what, kind, method, message) => {
    for (const returned of [{}, undefined]) {
      const world = await createWorld({ script: says("never") });
      Object.assign(world[kind], { [method]: async () => returned });
      const { result } = await world.run({ customTools, mcpServers });
      expect(result.failure?.code).toBe("plugin_broke_contract");
      expect(result.error).toContain("of the plugin 'fakes'");
      expect(result.error).toContain(`${method}()`);
      if (returned !== undefined) expect(result.error).toContain(message);
    }
  });

  test("a sandbox that isn't whole is closed all the same", async () => {
    const world = await createWorld({ script: says("never") });
    const open = world.sandbox.open.bind(world.sandbox);
    const half: typeof open = async (...given) =>
      Object.assign(await open(...given), { readFile: undefined });
    Object.assign(world.sandbox, { open: half });
    expect((await world.run()).result.error).toContain("readFile is required: a method");
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 1 });
  });

  test("an outcome of a status that there isn't, with a text", async () => {
    const executor = new FakeExecutor();
    Object.assign(executor, { execute: async () => ({ status: "finished", output: "x" }) });
    const world = await createWorld({ executors: [executor], script: calls("look_up") });
    const { result } = await world.run({ customTools });
    expect(result.failure?.code).toBe("plugin_broke_contract");
    expect(result.error).toContain("status must be completed, failed or parked");
  });
});

describe("an error that a plugin leaves unhandled", () => {
  test("ends the runs that it acts in, by its name, and no other", async () => {
    const begun = Promise.withResolvers<void>();
    const executor = new FakeExecutor({
      execute: () => {
        begun.resolve();
        return forever();
      },
    });
    const held = Promise.withResolvers<void>();
    const world = await createWorld({
      executors: [executor],
      script: [
        calls("look_up"),
        async function* () {
          await held.promise;
          yield { type: "message", text: "still here" };
          yield done;
        },
      ],
    });
    const faulty = world.run({ customTools });
    await begun.promise;
    const other = world.run();
    expect(world.runner.faulted(executor, new Error("spawn ssh ENOENT"))).toBe(true);
    const { result } = await faulty;
    expect(result.failure?.code).toBe("plugin_broke_contract");
    expect(result.error).toContain("Executor 'callback' of the plugin 'fake-tools' left an error unhandled");
    expect(result.error).not.toContain("ENOENT");
    held.resolve();
    expect((await other).result).toMatchObject({ ok: true, output: "still here" });
  });

  test("names the plugin whose code was called last, and Ambit's own code as none", async () => {
    const seen: Record<string, string | undefined> = {};
    const note = (where: string) => {
      seen[where] = offerUnderWay()?.name;
    };
    const executor = new FakeExecutor({
      execute: async () => {
        note("the executor");
        await new Promise((resolve) => setImmediate(resolve));
        note("the executor, later");
        return { status: "completed", output: "" };
      },
    });
    const world = await createWorld({
      executors: [executor],
      script: async function* ({ tools }) {
        note("the harness");
        await tools().call("look_up");
        note("the harness, after the call");
        yield done;
      },
      sandbox: { onOpen: () => note("the sandbox"), onWriteFiles: () => note("its files") },
      observers: [{ name: "watching", observe: () => ({ entered: () => note("the observer") }) }],
    });
    await world.run({ customTools, harnessFiles: [{ path: "a", content: "b" }] });
    expect(seen).toEqual({
      "the executor": "callback",
      "the executor, later": "callback",
      "the harness": "scripted",
      "the harness, after the call": "scripted",
      "the sandbox": "fake",
      "its files": "fake",
      "the observer": "watching",
    });
    expect(offerUnderWay()).toBeUndefined();
  });
});

test("only a sandbox of which something was proven is called confined", async () => {
  const opening = { script: says("ok") };
  const nothing = await createWorld({ ...opening, sandbox: { claims: [], confinement: "confined" } });
  expect((await nothing.run()).result.receipt?.confinement).toBe("unconfined");
  const proven = await createWorld({ ...opening, sandbox: { claims: ["network.deny"] } });
  await proven.registry.candidates();
  expect((await proven.run()).result.receipt?.confinement).toBe("confined");
});

describe("closing", () => {
  test.each([
    ["throws", () => Promise.reject(new Error("bug"))],
    ["hangs", forever],
  ])("a sandbox whose close %s doesn't keep the result", async (_what, onClose) => {
    const world = await createWorld({ script: says("ok"), sandbox: { onClose } });
    expect((await world.run()).result.ok).toBe(true);
    expect(world.log.lines.some(({ level }) => level === "error")).toBe(true);
  });

  test.each([
    ["throws", () => Promise.reject(new Error("bug"))],
    ["hangs", forever],
  ])("an agent whose close %s doesn't keep the sandbox open", async (_what, onClose) => {
    const world = await createWorld({ script: says("ok"), harness: { onClose } });
    expect((await world.run()).result.ok).toBe(true);
    expect(world.sandbox.closed).toBe(1);
  });

  test("after a failure the sandbox is probed again before it is used", async () => {
    let works = false;
    const world = await createWorld({
      script: says("ok"),
      sandbox: {
        onOpen: () => {
          if (!works) throw new SandboxFailed("no namespaces");
        },
      },
    });
    await world.run(restricted);
    expect(world.sandbox.probes).toBe(1);
    works = true;
    expect((await world.run(restricted)).result.ok).toBe(true);
    expect(world.sandbox.probes).toBe(2);
    await world.run(restricted);
    expect(world.sandbox.probes).toBe(2);
  });

  test("what an earlier process couldn't prove is probed again before it refuses a run", async () => {
    const world = await createWorld({ script: says("ok") });
    const [proven, ...rest] = await world.registry.describe();
    if (proven === undefined) throw new Error("unreachable");
    const later = await createWorld({ script: says("ok") });
    later.registry.restore([{ ...proven, findings: [] }, ...rest]);
    // At once: the second finds the new probe under way.
    const both = await Promise.all([later.run(restricted), later.run(restricted)]);
    expect(both.map(({ result }) => result.ok)).toEqual([true, true]);
    expect(later.sandbox.probes).toBe(1);
    // What was proven isn't: no probe could add to it.
    const complete = await createWorld({ script: says("ok") });
    complete.registry.restore([proven, ...rest]);
    const sandboxPermission = { network: "off", secrets: "hidden" };
    const toolCallback = { endpoint: "http://127.0.0.1:1/" };
    const customTools = [{ name: "mail", callRef: "mail", inputSchema: { type: "object" } }];
    await expect(complete.run({ sandboxPermission, toolCallback, customTools })).rejects.toMatchObject({
      code: "boundary_refused",
    });
    expect(complete.sandbox.probes).toBe(0);
  });

  test("a run without requirements doesn't wait for a probe", async () => {
    const world = await createWorld({ script: says("ok") });
    expect((await world.run()).result.ok).toBe(true);
    expect(world.sandbox.probes).toBe(0);
  });
});

test("a run ends with its result, whatever throws before its turn", async () => {
  const world = await createWorld({ script: says("never") });
  let armed = false;
  const input = {
    get a() {
      if (armed) throw new Error("a fault of our own");
      return 1;
    },
  };
  const messages = [
    { role: "user", content: "go" },
    { role: "assistant", content: [{ type: "tool_call", toolCallId: "c", toolName: "t", input }] },
    { role: "tool", content: [{ type: "tool_result", toolCallId: "c", output: "x" }] },
  ];
  const run = await world.admit({ messages });
  armed = true;
  expect((await world.tell(run)).result).toMatchObject({ ok: false, failure: { code: "internal" } });
  // Its place is free again, and it is no run any more.
  expect(() => world.runner.cancel(run.id)).toThrow("There is no run");
});
