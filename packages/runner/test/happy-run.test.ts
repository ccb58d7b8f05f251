import { runResultSchema, streamRecordSchema } from "@ambit/core/contract";
import { calls, done, says } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { createWorld, eventsOf } from "./fakes/world.js";

const tool = { name: "look_up", permission: "allow", callRef: "ref" };

describe("a successful run", () => {
  test("ends with one result that has the agent's output and a receipt", async () => {
    const world = await createWorld({ script: says("Hello.") });
    const { records, result, failure } = await world.run();
    expect(failure).toBeUndefined();
    for (const record of records) expect(streamRecordSchema.safeParse(record).error).toBeUndefined();
    expect(records.filter(({ kind }) => kind === "result")).toHaveLength(1);
    expect(result).toMatchObject({
      ok: true,
      output: "Hello.",
      messages: [{ role: "assistant", content: "Hello." }],
      events: [],
      stopReason: "end_turn",
      model: "scripted-1",
      receipt: { sandbox: "fake", session: { history: "new" }, evidence: { uid: 64_001, "agent.pid": 1 } },
    });
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 1 });
    expect(world.harness.closed).toBe(1);
  });

  test("the stream's first event names the run, its agent and its sandbox", async () => {
    await using world = await createWorld({ script: says("Hi.") });
    const { events, run } = await world.run({ sessionId: "one" });
    const data = { runId: run.id, harness: "scripted", sandbox: "fake", sessionId: "one" };
    expect(events[0]).toEqual({ type: "data", name: "run", data, transient: true });
  });

  test("the result contains the events if they aren't streamed, with coalesced deltas", async () => {
    const world = await createWorld({
      script: async function* () {
        yield { type: "thought_start", id: "t" };
        yield { type: "thought_delta", id: "t", delta: "hm" };
        yield { type: "thought_end", id: "t" };
        yield { type: "message_start", id: "m" };
        yield { type: "message_delta", id: "m", delta: "Hel" };
        yield { type: "message_delta", id: "m", delta: "lo." };
        yield { type: "message_end", id: "m" };
        yield { type: "message", text: "Bye." };
        yield { type: "usage", input: 10, output: 5, total: 15, cost: 0.001 };
        yield done;
      },
    });
    const { result } = await world.run({}, true);
    expect(runResultSchema.safeParse(JSON.parse(JSON.stringify(result))).error).toBeUndefined();
    expect(result.events.slice(1)).toEqual([
      { type: "thought", text: "hm" },
      { type: "message", text: "Hello." },
      { type: "message", text: "Bye." },
      { type: "usage", input: 10, output: 5, total: 15, cost: 0.001 },
      done,
    ]);
    expect(result.output).toBe("Hello.\n\nBye.");
    expect(result.usage).toEqual({ input: 10, output: 5, total: 15, cost: 0.001 });
  });

  test("a tool call goes to its executor and back; render hints and data reach the events, not the model", async () => {
    const render = { kind: "component", name: "Card" } as const;
    const world = await createWorld({ script: calls("look_up", { city: "Bern" }) });
    world.callback.behaviour.execute = async () => ({
      status: "completed",
      output: "sunny",
      data: { icon: 1 },
    });
    const recorded = await world.run({
      customTools: [{ ...tool, render }],
      toolCallback: { endpoint: "http://127.0.0.1:1/" },
    });
    expect(recorded.result.ok).toBe(true);
    expect(world.callback.calls).toMatchObject([{ id: "call-1", arguments: { city: "Bern" } }]);
    expect(eventsOf(recorded, "tool_call")).toEqual([
      { type: "tool_call", id: "call-1", name: "look_up", input: { city: "Bern" }, render },
    ]);
    expect(eventsOf(recorded, "tool_result")).toEqual([
      { type: "tool_result", id: "call-1", output: "sunny", isError: false, data: { icon: 1 }, render },
    ]);
  });

  test("the delivery gets a tool's public part only", async () => {
    const world = await createWorld({
      script: async function* ({ tools }) {
        yield { type: "data", name: "tools", data: [...tools().list()] };
        yield done;
      },
    });
    const secret = { ...tool, code: "secret code", env: { KEY: "secret value" } };
    const recorded = await world.run({ customTools: [{ ...secret, description: "looks", readOnly: true }] });
    const [, listed] = eventsOf(recorded, "data");
    const inputSchema = { type: "object", properties: {} };
    expect(listed?.data).toEqual([{ name: "look_up", description: "looks", inputSchema, readOnly: true }]);
  });

  test("harness files and skills are in the workspace before the agent starts", async () => {
    const world = await createWorld({
      script: says("ok"),
      harness: { onStart: () => expect(world.sandbox.files).toHaveLength(2) },
    });
    await world.run({
      harnessFiles: [{ path: "a.txt", content: "A" }],
      skills: [{ name: "greet", description: "greets", body: "Say hi." }],
    });
    expect(world.sandbox.files.map(({ path }) => path)).toEqual([
      "/workspace/a.txt",
      "/workspace/.agents/skills/greet/SKILL.md",
    ]);
  });

  test("a receipt counts the boundary's decisions, and repeats are one event", async () => {
    const world = await createWorld({
      script: async function* () {
        const spec = world.sandbox.specs[0];
        for (let index = 0; index < 3; index += 1) {
          spec?.onDecision({ target: "evil.example:443", allowed: false, reason: "not listed" });
        }
        spec?.onDecision({ target: "good.example:443", allowed: true, reason: "listed" });
        yield done;
      },
    });
    const recorded = await world.run();
    expect(recorded.result.receipt?.decisions).toEqual({ allowed: 1, refused: 3 });
    expect(eventsOf(recorded, "boundary_decision")).toEqual([
      {
        type: "boundary_decision",
        target: "evil.example:443",
        allowed: false,
        reason: "not listed",
        count: 3,
      },
      { type: "boundary_decision", target: "good.example:443", allowed: true, reason: "listed", count: 1 },
    ]);
  });

  test("the traceparent's trace id is on the result", async () => {
    const world = await createWorld({ script: says("ok") });
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const { result } = await world.run({ context: { propagation: { traceparent } } });
    expect(result.traceId).toBe("0af7651916cd43dd8448eb211c80319c");
  });
});
