import { RequestError } from "@agentclientprotocol/sdk/unstable";
import { describe, expect, it } from "vitest";
import { chunk, endTurn } from "./support/fake-agent.js";
import { eventsFor, failureFor } from "./support/fake-turns.js";
import { ofType } from "./support/runs.js";

describe("tool calls, as agents really send them", () => {
  const done = {
    toolCallId: "c",
    status: "completed",
    content: [{ type: "content", content: { type: "text", text: "out" } }],
  };
  const pending = { toolCallId: "c", title: "t", kind: "other", status: "pending" };
  const call = { sessionUpdate: "tool_call", ...pending };
  const filled = { sessionUpdate: "tool_call_update", toolCallId: "c", rawInput: { a: 1 } };
  const finished = { sessionUpdate: "tool_call_update", ...done };
  it.each([
    { what: "in order", updates: [call, filled, finished] },
    { what: "the update before the call", updates: [filled, call, finished] },
    { what: "the call twice", updates: [call, { ...call, rawInput: { a: 1 } }, finished] },
    { what: "the result twice", updates: [{ ...call, rawInput: { a: 1 } }, finished, finished] },
    { what: "one call that is done already", updates: [{ ...call, ...done, rawInput: { a: 1 } }] },
    { what: "a late start behind the result", updates: [{ ...call, ...done, rawInput: { a: 1 } }, call] },
  ])("$what: one call with its input, one result", async ({ updates }) => {
    const { events } = await eventsFor(async (turn) => {
      for (const update of updates) await turn.update(update);
      return endTurn;
    });
    expect(events).toEqual([
      { type: "tool_call", id: "c", name: "t", input: { a: 1 } },
      { type: "tool_result", id: "c", output: "out" },
      { type: "usage", input: 1, output: 1, total: 2 },
      { type: "done", stopReason: "end_turn" },
    ]);
  });

  it("only a result, without a call: both events all the same", async () => {
    const { events } = await eventsFor(async (turn) => {
      await turn.update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "failed" });
      return endTurn;
    });
    expect(ofType(events, "tool_call")).toEqual([{ type: "tool_call", id: "c", name: "tool" }]);
    expect(ofType(events, "tool_result")).toEqual([{ type: "tool_result", id: "c", isError: true }]);
  });

  it("a call that never gets its input is told before what comes next", async () => {
    const { events } = await eventsFor(async (turn) => {
      await turn.update(call);
      await turn.update(chunk("text"));
      await turn.update(finished);
      return endTurn;
    });
    expect(events.map(({ type }) => type).slice(0, 5)).toEqual([
      "tool_call",
      "message_start",
      "message_delta",
      "message_end",
      "tool_result",
    ]);
  });

  it("a call that stays open is settled as an error when the turn ends well, or fails", async () => {
    const { events } = await eventsFor(async (turn) => {
      await turn.update(call);
      return endTurn;
    });
    expect(ofType(events, "tool_result")).toMatchObject([{ id: "c", isError: true }]);
    const failed = await failureFor(async (turn) => {
      await turn.update(call);
      throw new RequestError(-32603, "boom");
    });
    expect(ofType(failed.events, "tool_call")).toHaveLength(1);
    expect(ofType(failed.events, "tool_result")).toMatchObject([{ id: "c", isError: true }]);
  });
});
