import { calls, done, type Script, untilAborted } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { asks, client, given, questions, withAnswer } from "../../fakes/parked-calls.js";
import { createWorld, eventsOf } from "../../fakes/world.js";

describe("an answer in the next request", () => {
  test("an approval lets the same call run once", async () => {
    const world = await createWorld({
      script: async function* ({ tools, signal }) {
        const own = tools();
        yield { type: "message", text: (await own.call("send", given)).output };
        await untilAborted(signal, own.call("send", given));
        yield done;
      },
    });
    const recorded = await world.run({ customTools: [asks], messages: withAnswer({ approved: true }) });
    expect(world.callback.calls).toHaveLength(1);
    expect(recorded.result.stopReason).toBe("paused");
    expect(eventsOf(recorded, "interaction_response")).toMatchObject([
      { kind: "user_approval", payload: { toolName: "send", approved: true } },
    ]);
  });

  test("a denial is a result for the model, and is marked as denied", async () => {
    const world = await createWorld({ script: calls("send", given) });
    const recorded = await world.run({ customTools: [asks], messages: withAnswer({ approved: false }) });
    expect(world.callback.calls).toEqual([]);
    expect(eventsOf(recorded, "tool_result")).toEqual([
      {
        type: "tool_result",
        id: "call-1",
        output: "The user did not approve tool 'send'.",
        isError: true,
        denied: true,
        deniedBy: "user",
        settled: "denied",
      },
    ]);
  });

  test.each([
    ["a text", "Bern", "Bern"],
    ["an object", { city: "Bern", approved: true }, '{"approved":true,"city":"Bern"}'],
  ])("a client tool's output: %s", async (_what, output, text) => {
    const world = await createWorld({ script: calls("pick", given) });
    const recorded = await world.run({ customTools: [client], messages: withAnswer(output, "pick") });
    expect(recorded.result.stopReason).toBe("end_turn");
    expect(eventsOf(recorded, "tool_result")).toMatchObject([{ output: text, isError: false }]);
  });

  test.each([
    ["for other arguments", withAnswer({ approved: true }, "send", { to: "eve" })],
    ["for another tool", withAnswer({ approved: true }, "post")],
    [
      "of the turn before",
      [
        ...withAnswer({ approved: true }),
        { role: "assistant", content: "done" },
        { role: "user", content: "again" },
      ],
    ],
    ["that is the runner's own stand-in", withAnswer("DEFERRED_NOT_EXECUTED: …")],
    ["that isn't about approval", withAnswer({ approved: "yes" })],
  ])("an answer %s is none: the call parks again", async (_what, messages) => {
    const world = await createWorld({ script: calls("send", given) });
    const recorded = await world.run({ customTools: [asks], messages });
    expect(recorded.result.stopReason).toBe("paused");
    expect(world.callback.calls).toEqual([]);
    expect(questions(recorded)).toHaveLength(1);
  });

  test("a deny overrides a stale approval", async () => {
    const world = await createWorld({ script: calls("send", given) });
    const denied = { ...asks, permission: "deny" };
    const recorded = await world.run({ customTools: [denied], messages: withAnswer({ approved: true }) });
    expect(world.callback.calls).toEqual([]);
    expect(eventsOf(recorded, "tool_result")).toMatchObject([
      { denied: true, deniedBy: "rule", output: "Tool 'send' is denied by policy." },
    ]);
    expect(recorded.result.stopReason).toBe("end_turn");
  });

  test("an operator's ceiling is the one who denies", async () => {
    const world = await createWorld({ script: calls("send", given), ceiling: ["send"] });
    const recorded = await world.run({ customTools: [{ ...asks, permission: "allow" }] });
    expect(eventsOf(recorded, "tool_result")).toMatchObject([{ deniedBy: "policy", settled: "denied" }]);
  });

  test("the user's text next to it reaches the agent", async () => {
    const world = await createWorld({ script: calls("send", given) });
    const messages = withAnswer({ approved: true });
    const text = "and be quick";
    await world.run({
      customTools: [asks],
      messages: [
        ...messages.slice(0, 2),
        { role: "user", content: [...(messages[2]?.content ?? []), { type: "text", text }] },
      ],
    });
    expect(world.harness.prompts[0]?.at(-1)?.text).toBe(text);
  });
});

describe("the agent asks before it calls", () => {
  const asking = (question: object, thenCalls = true): Script =>
    async function* ({ ask, tools, signal }) {
      const answer = await ask({
        toolCallId: "call-1",
        toolName: "send",
        server: "ambit",
        input: given,
        ...question,
      });
      yield { type: "message", text: answer };
      if (answer === "allow" && thenCalls) {
        const outcome = await untilAborted(signal, tools().call("send", given, { id: "call-1" }));
        if (outcome !== undefined) yield { type: "message", text: outcome.output };
      }
      yield done;
    };

  test("an approval of its question is used by the execution, without a second question", async () => {
    const world = await createWorld({ script: asking({}) });
    const recorded = await world.run({ customTools: [asks], messages: withAnswer({ approved: true }) });
    expect(recorded.result).toMatchObject({ output: 'allow\n\n{"to":"ann"}', stopReason: "end_turn" });
    expect(eventsOf(recorded, "interaction_response")).toHaveLength(1);
  });

  test("an approval for other arguments doesn't count when the call is executed", async () => {
    const world = await createWorld({
      script: async function* ({ ask, tools, signal }) {
        const answer = await ask({ toolCallId: "call-1", toolName: "send", server: "ambit", input: given });
        yield { type: "message", text: answer };
        await untilAborted(signal, tools().call("send", { to: "eve" }, { id: "call-1" }));
        yield done;
      },
    });
    const recorded = await world.run({ customTools: [asks], messages: withAnswer({ approved: true }) });
    expect(recorded.result.stopReason).toBe("paused");
    expect(world.callback.calls).toEqual([]);
    expect(questions(recorded)).toMatchObject([{ payload: { input: { to: "eve" } } }]);
  });

  test("its claim that a published tool only reads isn't trusted", async () => {
    const unsaid = { name: "send", callRef: "ref" };
    const world = await createWorld({ script: asking({ readOnly: true }) });
    const recorded = await world.run({ customTools: [unsaid] });
    expect(recorded.result).toMatchObject({ stopReason: "paused", output: "park" });
    expect(world.callback.calls).toEqual([]);
    // The control: only the agent can know that about its own tools.
    const own = await createWorld({
      script: asking({ readOnly: true, server: undefined, toolName: "Read" }, false),
    });
    expect((await own.run()).result.output).toBe("allow");
  });

  test("a user's MCP server can't declare its tools harmless", async () => {
    const world = await createWorld({
      script: calls("search", {}, { server: "docs" }),
    });
    const connection = { type: "http", url: "https://docs.example/mcp" };
    const recorded = await world.run({ mcpServers: [{ name: "docs", connection }] });
    expect(recorded.result.stopReason).toBe("paused");
    expect(world.toolSource.received).toEqual([]);
    const allowed = await world.run({
      mcpServers: [{ name: "docs", connection, policy: { permission: "allow" } }],
    });
    expect(allowed.result.stopReason).toBe("end_turn");
    expect(world.toolSource.received).toHaveLength(1);
  });

  test("another server's tool of the same name isn't mistaken for a published one", async () => {
    const allowed = { ...asks, permission: "allow" };
    const world = await createWorld({ script: asking({ server: "elsewhere" }, false) });
    expect(
      (await world.run({ customTools: [allowed], permissions: { default: "ask" } })).result.stopReason,
    ).toBe("paused");
  });
});
