import { calls, done, forever, says, untilAborted } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { asks, client, given, questions } from "../../fakes/parked-calls.js";
import { createWorld, eventsOf } from "../../fakes/world.js";

describe("a call that needs the user pauses the run", () => {
  test.each([
    ["a client tool", client, "client_tool"],
    ["a permission that asks", asks, "user_approval"],
  ])("%s", async (_what, tool, kind) => {
    const world = await createWorld({ script: calls(tool.name, given) });
    const recorded = await world.run({ customTools: [tool] });
    expect(recorded.result).toMatchObject({ ok: true, stopReason: "paused" });
    const [call] = eventsOf(recorded, "tool_call");
    expect(call).toMatchObject({
      id: expect.stringMatching(/^ask_[\w-]{60}$/),
      name: tool.name,
      input: given,
    });
    const payload = { toolCallId: call?.id, toolName: tool.name, input: given };
    expect(questions(recorded)).toEqual([{ type: "interaction_request", id: call?.id, kind, payload }]);
    expect(recorded.events.map(({ type }) => type)).toEqual([
      "data",
      "tool_call",
      "interaction_request",
      "done",
    ]);
    // The call waits for its answer: it has no result yet, and the turn's end comes last.
    expect(eventsOf(recorded, "tool_result")).toEqual([]);
    expect(eventsOf(recorded, "done")).toEqual([{ type: "done", stopReason: "paused" }]);
    expect(recorded.events.at(-1)).toEqual({ type: "done", stopReason: "paused" });
    expect(world.callback.calls).toEqual([]);
  });

  test("a call without the agent's id is matched with the one that the agent reported", async () => {
    const world = await createWorld({
      script: async function* ({ tools, signal }) {
        yield { type: "tool_call", id: "agents-own", name: "send", input: given };
        await untilAborted(signal, tools().call("send", given));
        yield done;
      },
    });
    const recorded = await world.run({ customTools: [asks] });
    expect(eventsOf(recorded, "tool_call")).toHaveLength(1);
    expect(questions(recorded)).toMatchObject([
      { payload: { toolCallId: eventsOf(recorded, "tool_call")[0]?.id } },
    ]);
  });

  test("an agent that continues after the pause gets nothing executed", async () => {
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
    const recorded = await world.run({ customTools: [asks, allowed] });
    expect(recorded.result.stopReason).toBe("paused");
    expect(world.callback.calls).toEqual([]);
    await expect.poll(() => outcomes).toHaveLength(2);
    expect(outcomes).toEqual([
      { output: expect.stringMatching(/^DEFERRED_NOT_EXECUTED: /), isError: true },
      { output: expect.stringContaining("waits for the user"), isError: true, isLate: true },
    ]);
  });

  test("other calls are settled: never begun, allowed but unknown, finished, parked", async () => {
    const slow = { name: "slow", callRef: "ref", permission: "allow" };
    const quick = { name: "quick", callRef: "ref", permission: "allow" };
    const world = await createWorld({
      limits: { closeMs: 60, pauseMs: 60 },
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
    const recorded = await world.run({ customTools: [asks, slow, quick] }, true);
    const expected = [
      {
        type: "tool_result",
        id: "bash",
        output: expect.stringMatching(/^DEFERRED_NOT_EXECUTED: /),
        isError: true,
        settled: "deferred",
      },
      {
        type: "tool_result",
        id: "slow",
        output: expect.stringMatching(/^APPROVED_EXECUTION_RESULT_UNKNOWN: /),
        isError: true,
        settled: "unknown",
      },
      { type: "tool_result", id: "quick", output: "quick answer", isError: false },
    ];
    expect(eventsOf(recorded, "tool_result")).toEqual(expected);
    expect(eventsOf({ events: recorded.result.events }, "tool_result")).toEqual(expected);
  });

  test("an agent that ignores the pause isn't reused for the session's next run", async () => {
    await using world = await createWorld({
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
  });
});
