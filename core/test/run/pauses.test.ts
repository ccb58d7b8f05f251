import { describe, expect, test } from "vitest";
import { NotFound, RequestInvalid } from "../../src/errors.js";
import { calls, done, forever, says, type Script, untilAborted } from "./fakes/harness.js";
import { createWorld, eventsOf, type Told } from "./fakes/world.js";

const client = { name: "pick", kind: "client" };
const asks = { name: "send", callRef: "ref", permission: "ask" };
const given = { to: "ann" };

/** The next turn's messages, as a platform writes them from what it was told. */
function withAnswer(output: unknown, name = "send", input: unknown = given, id = "call-1") {
  return [
    { role: "user", content: "go" },
    { role: "assistant", content: [{ type: "tool_call", toolCallId: id, toolName: name, input }] },
    { role: "tool", content: [{ type: "tool_result", toolCallId: id, output }] },
  ];
}

const questions = (told: Told) => eventsOf(told, "interaction_request");

describe("a call that needs the user pauses the run", () => {
  test.each([
    ["a client tool", client, "client_tool"],
    ["a permission that asks", asks, "user_approval"],
  ])("%s", async (_what, tool, kind) => {
    const world = await createWorld({ script: calls(tool.name, given) });
    const told = await world.run({ customTools: [tool] });
    expect(told.result).toMatchObject({ ok: true, stopReason: "paused" });
    expect(questions(told)).toEqual([
      {
        type: "interaction_request",
        id: expect.any(String),
        kind,
        payload: { toolCallId: "call-1", toolName: tool.name, input: given },
      },
    ]);
    // The call waits for its answer: it has no result yet, and the turn's end comes last.
    expect(eventsOf(told, "tool_result")).toEqual([]);
    expect(eventsOf(told, "done")).toEqual([{ type: "done", stopReason: "paused" }]);
    expect(told.events.at(-1)).toEqual({ type: "done", stopReason: "paused" });
    expect(world.callback.calls).toEqual([]);
  });

  test("a call that reaches us without the agent's id is put to the user under the id the agent reported", async () => {
    const world = await createWorld({
      script: async function* ({ tools, signal }) {
        yield { type: "tool_call", id: "agents-own", name: "send", input: given };
        await untilAborted(signal, tools().call("send", given));
        yield done;
      },
    });
    const told = await world.run({ customTools: [asks] });
    expect(questions(told)).toMatchObject([{ payload: { toolCallId: "agents-own" } }]);
  });

  test("an agent that goes on after the pause gets nothing executed", async () => {
    const outcomes: unknown[] = [];
    const allowed = { name: "look_up", callRef: "ref", permission: "allow" };
    const world = await createWorld({
      limits: { closeMs: 60 },
      script: async function* ({ tools, signal }) {
        const parked = tools().call("send", given);
        await untilAborted(signal, forever());
        outcomes.push(await tools().call("look_up"));
        yield { type: "message", text: "going on" };
        outcomes.push(await parked);
      },
    });
    const told = await world.run({ customTools: [asks, allowed] });
    expect(told.result.stopReason).toBe("paused");
    expect(world.callback.calls).toEqual([]);
    await expect.poll(() => outcomes).toHaveLength(2);
    expect(outcomes).toEqual([
      { output: expect.stringMatching(/^DEFERRED_NOT_EXECUTED: /), isError: true },
      { output: expect.stringContaining("waits for the user"), isError: true },
    ]);
  });

  test("siblings are settled: never begun, allowed but unknown, finished, parked", async () => {
    const slow = { name: "slow", callRef: "ref", permission: "allow" };
    const quick = { name: "quick", callRef: "ref", permission: "allow" };
    const world = await createWorld({
      limits: { closeMs: 60 },
      script: async function* ({ tools, signal }) {
        yield { type: "tool_call", id: "bash", name: "Bash", input: { command: "ls" } };
        yield { type: "tool_call", id: "slow", name: "slow", input: {} };
        yield { type: "tool_call", id: "quick", name: "quick", input: {} };
        yield { type: "tool_call", id: "send", name: "send", input: given };
        void tools().call("slow");
        await tools().call("quick");
        await untilAborted(signal, tools().call("send", given));
        yield { type: "done", stopReason: "cancelled" };
      },
    });
    world.callback.behaviour.execute = ({ tool }) =>
      tool.name === "slow" ? forever() : Promise.resolve({ status: "completed", output: "quick answer" });
    const told = await world.run({ customTools: [asks, slow, quick] }, true);
    const expected = [
      { type: "tool_result", id: "bash", output: expect.stringMatching(/^DEFERRED_NOT_EXECUTED: /), isError: true },
      {
        type: "tool_result",
        id: "slow",
        output: expect.stringMatching(/^APPROVED_EXECUTION_RESULT_UNKNOWN: /),
        isError: true,
      },
      { type: "tool_result", id: "quick", output: "quick answer", isError: false },
    ];
    expect(eventsOf(told, "tool_result")).toEqual(expected);
    expect(eventsOf({ events: told.result.events }, "tool_result")).toEqual(expected);
  });

  test("an agent that ignores the pause isn't kept for the session's next run", async () => {
    const world = await createWorld({
      limits: { closeMs: 40 },
      script: [
        async function* ({ tools }) {
          void tools().call("send", given);
          yield { type: "message", text: "x" };
          await forever();
        },
        says("ok"),
      ],
    });
    expect((await world.run({ sessionId: "s", customTools: [asks] })).result.stopReason).toBe("paused");
    expect(world.harness.closed).toBe(1);
    expect(world.sandbox.closed).toBe(0);
    await world.runner.drain(0);
  });
});

describe("the answer comes with the next request", () => {
  test("an approval lets the same call run once", async () => {
    const world = await createWorld({
      script: async function* ({ tools, signal }) {
        const own = tools();
        yield { type: "message", text: (await own.call("send", given)).output };
        await untilAborted(signal, own.call("send", given));
        yield done;
      },
    });
    const told = await world.run({ customTools: [asks], messages: withAnswer({ approved: true }) });
    expect(world.callback.calls).toHaveLength(1);
    expect(told.result.stopReason).toBe("paused");
    expect(eventsOf(told, "interaction_response")).toMatchObject([
      { kind: "user_approval", payload: { toolName: "send", approved: true } },
    ]);
  });

  test("a refusal is a result for the model, and is told as denied", async () => {
    const world = await createWorld({ script: calls("send", given) });
    const told = await world.run({ customTools: [asks], messages: withAnswer({ approved: false }) });
    expect(world.callback.calls).toEqual([]);
    expect(eventsOf(told, "tool_result")).toEqual([
      {
        type: "tool_result",
        id: "call-1",
        output: "The user did not approve tool 'send'.",
        isError: true,
        denied: true,
      },
    ]);
  });

  test.each([
    ["a text", "Bern", "Bern"],
    ["an object", { city: "Bern", approved: true }, '{"approved":true,"city":"Bern"}'],
  ])("a client tool's output: %s", async (_what, output, text) => {
    const world = await createWorld({ script: calls("pick", given) });
    const told = await world.run({ customTools: [client], messages: withAnswer(output, "pick") });
    expect(told.result.stopReason).toBe("end_turn");
    expect(eventsOf(told, "tool_result")).toMatchObject([{ output: text, isError: false }]);
  });

  test.each([
    ["for other arguments", withAnswer({ approved: true }, "send", { to: "eve" })],
    ["for another tool", withAnswer({ approved: true }, "post")],
    ["of the turn before", [...withAnswer({ approved: true }), { role: "assistant", content: "done" }, { role: "user", content: "again" }]],
    ["that is the runner's own stand-in", withAnswer("DEFERRED_NOT_EXECUTED: …")],
    ["that isn't about approval", withAnswer({ approved: "yes" })],
  ])("an answer %s is none: the call parks again", async (_what, messages) => {
    const world = await createWorld({ script: calls("send", given) });
    const told = await world.run({ customTools: [asks], messages });
    expect(told.result.stopReason).toBe("paused");
    expect(world.callback.calls).toEqual([]);
    expect(questions(told)).toHaveLength(1);
  });

  test("a deny stands above a stale approval", async () => {
    const world = await createWorld({ script: calls("send", given) });
    const denied = { ...asks, permission: "deny" };
    const told = await world.run({ customTools: [denied], messages: withAnswer({ approved: true }) });
    expect(world.callback.calls).toEqual([]);
    expect(eventsOf(told, "tool_result")).toMatchObject([
      { denied: true, output: "Tool 'send' is denied by policy." },
    ]);
    expect(told.result.stopReason).toBe("end_turn");
  });

  test("what the user says beside it reaches the agent", async () => {
    const world = await createWorld({ script: calls("send", given) });
    const messages = withAnswer({ approved: true });
    const text = "and be quick";
    await world.run({
      customTools: [asks],
      messages: [...messages.slice(0, 2), { role: "user", content: [...(messages[2]?.content ?? []), { type: "text", text }] }],
    });
    expect(world.harness.prompts[0]?.at(-1)?.text).toBe(text);
  });
});

describe("the agent asks before it calls", () => {
  const asking =
    (question: object, thenCalls = true): Script =>
    async function* ({ ask, tools, signal }) {
      const answer = await ask({ toolCallId: "call-1", toolName: "send", server: "ambit", input: given, ...question });
      yield { type: "message", text: answer };
      if (answer === "allow" && thenCalls) {
        const outcome = await untilAborted(signal, tools().call("send", given, { id: "call-1" }));
        if (outcome !== undefined) yield { type: "message", text: outcome.output };
      }
      yield done;
    };

  test("a consent given to its question is used by the execution, and asked for once", async () => {
    const world = await createWorld({ script: asking({}) });
    const told = await world.run({ customTools: [asks], messages: withAnswer({ approved: true }) });
    expect(told.result).toMatchObject({ output: 'allow\n\n{"to":"ann"}', stopReason: "end_turn" });
    expect(eventsOf(told, "interaction_response")).toHaveLength(1);
  });

  test("a consent for other arguments is none where the call is executed", async () => {
    const world = await createWorld({
      script: async function* ({ ask, tools, signal }) {
        const answer = await ask({ toolCallId: "call-1", toolName: "send", server: "ambit", input: given });
        yield { type: "message", text: answer };
        await untilAborted(signal, tools().call("send", { to: "eve" }, { id: "call-1" }));
        yield done;
      },
    });
    const told = await world.run({ customTools: [asks], messages: withAnswer({ approved: true }) });
    expect(told.result.stopReason).toBe("paused");
    expect(world.callback.calls).toEqual([]);
    expect(questions(told)).toMatchObject([{ payload: { input: { to: "eve" } } }]);
  });

  test("its word that a tool of ours only reads counts for nothing", async () => {
    const unsaid = { name: "send", callRef: "ref" };
    const world = await createWorld({ script: asking({ readOnly: true }) });
    const told = await world.run({ customTools: [unsaid] });
    expect(told.result.stopReason).toBe("paused");
    expect(world.callback.calls).toEqual([]);
    // The control: of its own tools nobody else could say it.
    const own = await createWorld({ script: asking({ readOnly: true, server: undefined, toolName: "Read" }, false) });
    expect((await own.run()).result.output).toBe("allow");
  });

  test("a user's MCP server can't make its tools harmless by saying so", async () => {
    const world = await createWorld({
      script: calls("search", {}, { server: "docs" }),
    });
    const connection = { type: "http", url: "https://docs.example/mcp" };
    const told = await world.run({ mcpServers: [{ name: "docs", connection }] });
    expect(told.result.stopReason).toBe("paused");
    expect(world.toolSource.received).toEqual([]);
    const allowed = await world.run({ mcpServers: [{ name: "docs", connection, policy: { permission: "allow" } }] });
    expect(allowed.result.stopReason).toBe("end_turn");
    expect(world.toolSource.received).toHaveLength(1);
  });

  test("another server's tool of the same name isn't ours", async () => {
    const allowed = { ...asks, permission: "allow" };
    const world = await createWorld({ script: asking({ server: "elsewhere" }, false) });
    expect((await world.run({ customTools: [allowed], permissions: { default: "ask" } })).result.stopReason).toBe(
      "paused",
    );
  });
});

describe("a live answer, while the run is held open", () => {
  const interactions = { holdMs: 5_000 };
  const two: Script = async function* ({ tools, signal }) {
    const own = tools();
    const first = own.call("send", { to: "ann" });
    const second = own.call("send", { to: "bob" });
    for (const outcome of [await untilAborted(signal, first), await untilAborted(signal, second)]) {
      yield { type: "message", text: outcome?.output ?? "(none)" };
    }
    yield done;
  };

  async function begun(script: Script, body: object, holdMs = interactions.holdMs) {
    const world = await createWorld({ script });
    const run = await world.admit({ ...body, interactions: { holdMs } });
    const events: Told["events"][number][] = [];
    let result: Told["result"] | undefined;
    const reading = (async () => {
      for await (const record of run.records()) {
        if (record.kind === "event") events.push(record.event);
        else result = record.result;
      }
      return result;
    })();
    const open = async (count: number) => {
      await expect.poll(() => eventsOf({ events }, "interaction_request")).toHaveLength(count);
      return eventsOf({ events }, "interaction_request").map(({ id }) => id);
    };
    return { world, run, events, reading, open };
  }

  test("answers in any order go to their own calls, each once", async () => {
    const { world, run, reading, open, events } = await begun(two, { customTools: [asks] });
    const [ann = "", bob = ""] = await open(2);
    world.runner.answer(run.id, bob, { approved: true });
    expect(() => world.runner.answer(run.id, bob, { approved: true })).toThrow(NotFound);
    world.runner.answer(run.id, ann, { approved: false });
    expect(await reading).toMatchObject({
      ok: true,
      stopReason: "end_turn",
      output: "The user did not approve tool 'send'.\n\n{\"to\":\"bob\"}",
    });
    expect(eventsOf({ events }, "interaction_response").map(({ id }) => id)).toEqual([bob, ann]);
    expect(() => world.runner.answer(run.id, ann, { approved: true })).toThrow(NotFound);
  });

  test("a forged id, or an answer that doesn't fit, executes nothing and leaves the question open", async () => {
    const { world, run, reading, open } = await begun(calls("send", given), { customTools: [asks] });
    const [id = ""] = await open(1);
    expect(() => world.runner.answer(run.id, "forged", { approved: true })).toThrow(NotFound);
    expect(() => world.runner.answer("forged", id, { approved: true })).toThrow(NotFound);
    for (const wrong of [{ output: "x" }, { approved: "yes" }, {}, null, { approved: true, extra: 1 }]) {
      expect(() => world.runner.answer(run.id, id, wrong)).toThrow(RequestInvalid);
    }
    expect(world.callback.calls).toEqual([]);
    world.runner.answer(run.id, id, { approved: true });
    expect(await reading).toMatchObject({ stopReason: "end_turn" });
    expect(world.callback.calls).toHaveLength(1);
  });

  test("a client tool gets its output", async () => {
    const { world, run, reading, open, events } = await begun(calls("pick", given), { customTools: [client] });
    const [id = ""] = await open(1);
    expect(() => world.runner.answer(run.id, id, { approved: true })).toThrow(RequestInvalid);
    world.runner.answer(run.id, id, { output: { city: "Bern" } });
    expect(await reading).toMatchObject({ stopReason: "end_turn" });
    expect(eventsOf({ events }, "tool_result")).toMatchObject([{ output: '{"city":"Bern"}', isError: false }]);
  });

  test("without an answer in time the run pauses, and a late one finds no question", async () => {
    const { world, run, reading, open } = await begun(two, { customTools: [asks] }, 40);
    const [ann = ""] = await open(2);
    expect(await reading).toMatchObject({ ok: true, stopReason: "paused" });
    expect(() => world.runner.answer(run.id, ann, { approved: true })).toThrow(NotFound);
    expect(world.callback.calls).toEqual([]);
  });

  test("the agent's patience is a limit to it", async () => {
    const world = await createWorld({ script: calls("send", given), harness: { holdsCallsMs: 30 } });
    const { result } = await world.run({ customTools: [asks], interactions: { holdMs: 60_000 } });
    expect(result.stopReason).toBe("paused");
  });

  test("an agent's own question is held as well, and the idle clock with it", async () => {
    const world = await createWorld({
      limits: { idleMs: 40 },
      script: async function* ({ ask }) {
        yield { type: "message", text: await ask({ toolCallId: "b", toolName: "Bash", input: { command: "ls" } }) };
        yield done;
      },
    });
    const run = await world.admit({ interactions });
    const events: Told["events"][number][] = [];
    const reading = (async () => {
      for await (const record of run.records()) if (record.kind === "event") events.push(record.event);
    })();
    await expect.poll(() => eventsOf({ events }, "interaction_request")).toHaveLength(1);
    await new Promise((resolve) => setTimeout(resolve, 120));
    world.runner.answer(run.id, eventsOf({ events }, "interaction_request")[0]?.id ?? "", { approved: true });
    await reading;
    expect(eventsOf({ events }, "message")).toEqual([{ type: "message", text: "allow" }]);
  });

  test("a cancel ends the wait", async () => {
    const { world, run, reading, open } = await begun(calls("send", given), { customTools: [asks] });
    await open(1);
    world.runner.cancel(run.id);
    expect(await reading).toMatchObject({ stopReason: "cancelled" });
    expect(world.callback.calls).toEqual([]);
  });
});
