import type { StartScope } from "@ambit/core/plugin";
import { FakeExecutor } from "@ambit/fakes/executor";
import { calls, done, forever, type Script, says } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { LiveTimers } from "../fakes/live-timers.js";
import { createWorld, eventsOf, recordsOf, type WorldOptions } from "../fakes/world.js";

const tool = { name: "look_up", permission: "allow", callRef: "ref" };
const hangs: Script = async function* ({ signal }) {
  yield { type: "message", text: "wait" };
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
};
/** Executes a command itself that prints nothing. */
const runsSilently: Script = async function* ({ signal }) {
  yield { type: "tool_call", id: "call-1", name: "Bash", input: { command: "npm test" } };
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
};
const ignoresAbort: Script = async function* () {
  yield { type: "message", text: "wait" };
  await forever();
};
/** Hangs before its first event. */
// biome-ignore lint/correctness/useYield: an agent that never says a word is what this is.
const mute: Script = async function* () {
  await forever();
};

describe("every time limit ends the run with run_timed_out, and everything is closed", () => {
  test.each<[what: string, options: WorldOptions, message: string]>([
    ["the whole run", { script: hangs, limits: { runTimeoutMs: 40 } }, "The run took longer than 0.04 s."],
    [
      "a silent agent",
      { script: hangs, limits: { idleMs: 40 } },
      "The agent did nothing for 0.04 s (limits.idleMs).",
    ],
    [
      "a silent call of the agent",
      { script: runsSilently, limits: { idleMs: 20, agentCallIdleMs: 60 } },
      "The agent's tool call 'Bash' had no result, and the agent sent nothing, for 0.06 s (limits.agentCallIdleMs).",
    ],
    ["no first event", { script: mute, limits: { firstResponseMs: 40 } }, "sent nothing within 0.04 s"],
    ["an agent that ignores the abort", { script: ignoresAbort, limits: { idleMs: 40 } }, "did nothing"],
    [
      "opening the sandbox",
      { script: says("never"), sandbox: { onOpen: forever }, limits: { startMs: 40 } },
      "Opening the sandbox took longer than 0.04 s.",
    ],
    [
      "filling the workspace",
      { script: says("never"), sandbox: { onWriteFiles: forever }, limits: { startMs: 40 } },
      "Writing the request's files took longer than 0.04 s.",
    ],
    [
      "starting the agent",
      { script: says("never"), harness: { onStart: forever }, limits: { startMs: 40 } },
      "Starting the agent took longer than 0.04 s.",
    ],
  ])("%s", async (_what, options, message) => {
    const world = await createWorld(options);
    const { result } = await world.run({ harnessFiles: [{ path: "a", content: "b" }] });
    expect(result).toMatchObject({ ok: false, failure: { code: "run_timed_out", retryable: true } });
    expect(result.error).toContain(message);
    expect(world.sandbox.closed).toBe(world.sandbox.opened);
  });

  test("a start that its harness explains isn't retryable, where that says so", async () => {
    const explained = async (retryable: boolean) => {
      const onStart = async (scope: StartScope) => {
        scope.explain?.(() => ({ sentence: "It printed: key-of-the-run.", retryable }));
        await forever();
      };
      const world = await createWorld({
        script: says("never"),
        harness: { onStart },
        limits: { startMs: 40 },
      });
      return (
        await world.run({
          modelConnection: {
            credentials: [{ binding: { kind: "environment", name: "A_KEY" }, value: "key-of-the-run" }],
          },
        })
      ).result;
    };
    const failed = await explained(false);
    expect(failed.failure).toEqual({ code: "run_timed_out", retryable: false });
    expect(failed.error).toMatch(/^Starting the agent took longer than 0\.04 s\. It printed: \S+$/);
    expect(failed.error).not.toContain("key-of-the-run");
    expect((await explained(true)).failure?.retryable).toBe(true);
  });

  test("publishing the tools", async () => {
    const world = await createWorld({ script: says("never"), limits: { startMs: 40 } });
    world.delivery.onPublish = forever;
    expect((await world.run({ customTools: [tool] })).result.failure?.code).toBe("run_timed_out");
  });

  test("the agent's output before the limit is in the result", async () => {
    const world = await createWorld({ script: hangs, limits: { idleMs: 40 } });
    expect((await world.run()).result.output).toBe("wait");
  });
});

describe("a tool's time limit is a result for the model", () => {
  const slow = (execute: ConstructorParameters<typeof FakeExecutor>[0]) => new FakeExecutor(execute);

  test.each([
    ["ignores its signal", forever],
    [
      "throws at its signal",
      (_call: unknown, { signal }: { readonly signal: AbortSignal }) =>
        new Promise<never>((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true }),
        ),
    ],
  ])("an executor that %s", async (_what, execute) => {
    const world = await createWorld({
      executors: [slow({ execute })],
      script: calls("look_up"),
      limits: { toolMs: 30, closeMs: 50 },
    });
    const recorded = await world.run({ customTools: [tool] });
    expect(recorded.result.ok).toBe(true);
    expect(eventsOf(recorded, "tool_result")).toEqual([
      { type: "tool_result", id: "call-1", output: "Tool 'look_up' took longer than 30 ms.", isError: true },
    ]);
  });

  test("the tool's own limit overrides the runner's", async () => {
    const seen: number[] = [];
    const executor = slow({
      execute: async (_call, { timeoutMs }) => {
        seen.push(timeoutMs);
        return { status: "completed", output: "" };
      },
    });
    const world = await createWorld({
      executors: [executor],
      script: calls("look_up"),
      limits: { toolMs: 30 },
    });
    await world.run({ customTools: [{ ...tool, timeoutMs: 12_345 }] });
    await world.run({ customTools: [tool] });
    expect(seen).toEqual([12_345, 30]);
  });

  test("it applies to a user's MCP server as well", async () => {
    const world = await createWorld({
      script: calls("search", {}, { server: "docs" }),
      limits: { toolMs: 30, closeMs: 50 },
    });
    world.toolSource.answer = forever;
    const connection = { type: "http", url: "https://docs.example/mcp" };
    const recorded = await world.run({
      mcpServers: [{ name: "docs", connection, policy: { permission: "allow" } }],
    });
    expect(eventsOf(recorded, "tool_result")).toMatchObject([
      { isError: true, output: "Tool 'search' took longer than 30 ms." },
    ]);
  });
});

describe("the idle clock is paused while the agent waits for the runner", () => {
  test("during a tool call", async () => {
    const executor = new FakeExecutor({
      execute: async () => {
        await new Promise((resolve) => setTimeout(resolve, 800));
        return { status: "completed", output: "late" };
      },
    });
    const world = await createWorld({
      executors: [executor],
      script: calls("look_up"),
      limits: { idleMs: 400, firstResponseMs: 400 },
    });
    expect((await world.run({ customTools: [tool] })).result).toMatchObject({ ok: true });
  });

  test("while the reader is behind", async () => {
    const world = await createWorld({
      limits: { idleMs: 400 },
      script: async function* () {
        for (let index = 0; index < 2_000; index += 1) yield { type: "message", text: "x" };
        yield done;
      },
    });
    const run = await world.admit({});
    const records = recordsOf(run);
    await records.next();
    await new Promise((resolve) => setTimeout(resolve, 800));
    let last = await records.next();
    for (let next = last; next.done !== true; next = await records.next()) last = next;
    expect(last.value).toMatchObject({ kind: "result", result: { ok: true } });
  });

  test("during a command that the agent executes itself, until its result", async () => {
    const reached: string[] = [];
    const world = await createWorld({
      limits: { idleMs: 50 },
      script: async function* ({ signal }) {
        yield { type: "tool_call", id: "call-1", name: "Bash", input: { command: "npm test" } };
        await new Promise((resolve) => setTimeout(resolve, 150));
        reached.push("result");
        yield { type: "tool_result", id: "call-1", output: "ok" };
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        reached.push("abort");
        yield done;
      },
    });
    const { result } = await world.run();
    expect(reached).toEqual(["result", "abort"]);
    expect(result.error).toContain("The agent did nothing for 0.05 s (limits.idleMs).");
  });

  test("and continues after the call", async () => {
    const world = await createWorld({
      limits: { idleMs: 60 },
      script: async function* ({ tools, signal }) {
        await tools().call("look_up");
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        yield done;
      },
    });
    expect((await world.run({ customTools: [tool] })).result.failure?.code).toBe("run_timed_out");
  });
});

test("no timer outlives a run, not even of a tool call that ends later", async () => {
  let finish = () => {};
  const executor = new FakeExecutor({
    execute: () =>
      new Promise((resolve) => {
        finish = () => resolve({ status: "completed", output: "late" });
      }),
  });
  using timers = new LiveTimers();
  const world = await createWorld({
    executors: [executor],
    limits: { runTimeoutMs: 60, closeMs: 30 },
    script: async function* ({ tools }) {
      void tools().call("look_up");
      yield { type: "message", text: "called" };
      await forever();
    },
  });
  const { result } = await world.run({ customTools: [tool] });
  expect(result.failure?.code).toBe("run_timed_out");
  // The control: the call's grace was still running when the run ended, or had just ended.
  finish();
  await expect.poll(() => timers.count).toBe(0);
});
