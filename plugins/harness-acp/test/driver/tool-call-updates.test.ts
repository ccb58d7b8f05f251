import { RequestError } from "@agentclientprotocol/sdk/unstable";
import { describe, expect, it } from "vitest";
import { chunk, endTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsFor, failureFor } from "../support/fake-turns.js";
import { eventsOf, ofType, turnOf } from "../support/runs.js";

describe("tool calls as real agents send them", () => {
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
    { what: "a call that is already done", updates: [{ ...call, ...done, rawInput: { a: 1 } }] },
    { what: "a late start after the result", updates: [{ ...call, ...done, rawInput: { a: 1 } }, call] },
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

  it("only a result, without a call: both events nevertheless", async () => {
    const { events } = await eventsFor(async (turn) => {
      await turn.update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "failed" });
      return endTurn;
    });
    expect(ofType(events, "tool_call")).toEqual([{ type: "tool_call", id: "c", name: "tool" }]);
    expect(ofType(events, "tool_result")).toEqual([{ type: "tool_result", id: "c", isError: true }]);
  });

  it("a call that never gets its input is emitted before the next event", async () => {
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

  it("a call that stays open becomes an error when the turn fails", async () => {
    const failed = await failureFor(async (turn) => {
      await turn.update(call);
      throw new RequestError(-32603, "boom");
    });
    expect(ofType(failed.events, "tool_call")).toHaveLength(1);
    expect(ofType(failed.events, "tool_result")).toMatchObject([{ id: "c", isError: true }]);
  });

  const work = "/home/agent/work";
  it.each([
    {
      what: "OpenCode: the command arrives in a later update",
      updates: [
        {
          sessionUpdate: "tool_call",
          toolCallId: "c",
          title: "bash",
          kind: "execute",
          status: "pending",
          locations: [{ path: work }],
          rawInput: { cwd: work },
        },
        {
          sessionUpdate: "tool_call_update",
          toolCallId: "c",
          status: "in_progress",
          title: "echo hi",
          rawInput: { command: "echo hi", cwd: work },
        },
        {
          sessionUpdate: "tool_call_update",
          toolCallId: "c",
          status: "completed",
          content: [{ type: "content", content: { type: "text", text: "hi\n" } }],
          rawOutput: { output: "hi\n", metadata: { output: "hi\n", exit: 0, truncated: false } },
        },
      ],
      input: { command: "echo hi", cwd: work },
      output: "hi\n",
    },
    {
      what: "Claude Code: the input starts empty, and its updates have no status",
      updates: [
        {
          sessionUpdate: "tool_call",
          toolCallId: "c",
          name: "Bash",
          title: "Terminal",
          kind: "execute",
          status: "pending",
          rawInput: {},
          content: [],
        },
        {
          sessionUpdate: "tool_call_update",
          toolCallId: "c",
          title: "echo hi",
          rawInput: { command: "echo hi" },
        },
        {
          sessionUpdate: "tool_call_update",
          toolCallId: "c",
          status: "completed",
          rawOutput: "hi",
          content: [{ type: "content", content: { type: "text", text: "```console\nhi\n```" } }],
        },
      ],
      input: { command: "echo hi" },
      output: "hi",
    },
    {
      what: "Codex: the output arrives in pieces, like a terminal's",
      updates: [
        {
          sessionUpdate: "tool_call",
          toolCallId: "c",
          name: "exec_command",
          kind: "execute",
          title: "echo hi",
          status: "in_progress",
          rawInput: { command: "echo hi", cwd: work },
          content: [{ type: "terminal", terminalId: "c" }],
        },
        ...["h", "i\n"].map((data) => ({
          sessionUpdate: "tool_call_update",
          toolCallId: "c",
          _meta: { terminal_output_delta: { data, terminal_id: "c" } },
        })),
        { sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" },
      ],
      input: { command: "echo hi", cwd: work },
      output: "hi\n",
    },
    {
      what: "an agent that reports that there are no arguments",
      updates: [{ ...call, status: "in_progress", rawInput: {} }, finished],
      input: {},
      output: "out",
    },
  ])("$what", async ({ updates, input, output }) => {
    const { events } = await eventsFor(async (turn) => {
      for (const update of updates) await turn.update(update);
      return endTurn;
    });
    expect(ofType(events, "tool_call")).toMatchObject([{ id: "c", input }]);
    // The wrapper that an agent puts around a result is no data of the tool.
    expect(ofType(events, "tool_result")).toEqual([{ type: "tool_result", id: "c", output }]);
  });

  it("two pending calls at once both get their input", async () => {
    const { events } = await eventsFor(async (turn) => {
      for (const id of ["a", "b"]) await turn.update({ ...call, toolCallId: id, rawInput: { cwd: work } });
      for (const id of ["b", "a"]) {
        const rawInput = { cwd: work, command: id };
        await turn.update({ ...filled, toolCallId: id, status: "in_progress", rawInput });
      }
      for (const id of ["a", "b"]) await turn.update({ ...finished, toolCallId: id });
      return endTurn;
    });
    expect(ofType(events, "tool_call")).toMatchObject([
      { id: "b", input: { command: "b" } },
      { id: "a", input: { command: "a" } },
    ]);
  });

  it("a published tool without arguments has the input {}, even if the agent shows none", async () => {
    const fake = fakeAgent({
      profile: { identify: () => ({ name: "lookup", server: "ambit" }) },
      onPrompt: async (turn) => {
        await turn.update({ ...call, status: "in_progress" });
        await turn.update(finished);
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    const events = await eventsOf(agent, turnOf());
    expect(ofType(events, "tool_call")).toEqual([{ type: "tool_call", id: "c", name: "lookup", input: {} }]);
    await scope.close();
  });
});
