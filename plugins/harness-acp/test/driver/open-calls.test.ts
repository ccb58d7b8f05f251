import { HarnessFailed } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { endTurn, type FakeTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsOf, failureOf, ofType, turnOf } from "../support/runs.js";

const limits = { openCalls: 10, openCallCharacters: 30_000 };

async function failureWith(onPrompt: (turn: FakeTurn) => Promise<unknown>) {
  const fake = fakeAgent({ onPrompt, limits });
  const { agent, scope } = await fake.start();
  const failed = await failureOf(agent, turnOf());
  await scope.close();
  return { ...failed, received: fake.received };
}

/** Continues until it is stopped, like a hostile agent, but in pieces small enough for a test. */
async function flood(turn: FakeTurn, updateOf: (index: number) => object): Promise<unknown> {
  for (let index = 0; index < 1_000 && !turn.signal.aborted; index += 1) {
    await turn.update(updateOf(index));
    await new Promise((resume) => setImmediate(resume));
  }
  return { stopReason: "cancelled" };
}

const opened = (index: number, more: object = {}) => ({
  sessionUpdate: "tool_call",
  toolCallId: `c${index}`,
  title: "t",
  status: "in_progress",
  ...more,
});

describe("tool calls that stay open", () => {
  it.each([
    { what: "in number", updateOf: opened, says: "more than 10 calls open at once" },
    {
      what: "by their inputs",
      updateOf: (index: number) => opened(index, { rawInput: { text: "x".repeat(3_000) } }),
      says: "calls of more than 30000 characters open at once",
    },
    {
      what: "by their results so far",
      updateOf: (index: number) => opened(index, { rawOutput: { text: "x".repeat(3_000) } }),
      says: "calls of more than 30000 characters open at once",
    },
    {
      what: "by a terminal's output, a piece at a time",
      updateOf: () => opened(0, { _meta: { terminal_output_delta: { data: "x".repeat(500) } } }),
      says: "calls of more than 30000 characters open at once",
    },
    {
      what: "by their ids",
      updateOf: () => opened(0, { toolCallId: "x".repeat(2_000) }),
      says: "a call whose id has more than 1024 characters",
    },
  ])("are limited $what: the agent is stopped, and the turn fails", async ({ updateOf, says }) => {
    const { error, events, received } = await failureWith((turn) => flood(turn, updateOf));
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(String(error)).toContain(says);
    expect(received).toContain("session/cancel");
    // Started calls are ended.
    expect(ofType(events, "tool_result")).toHaveLength(ofType(events, "tool_call").length);
  });

  it("are limited if they come with a question", async () => {
    const { error } = await failureWith(async (turn) => {
      const toolCall = { toolCallId: "c", title: "t", rawInput: { text: "x".repeat(40_000) } };
      await turn.ask({ toolCall, options: [{ optionId: "y", name: "Yes", kind: "allow_once" }] });
      return { stopReason: "cancelled" };
    });
    expect(String(error)).toContain("calls of more than 30000 characters");
  });

  it("are unlimited one after the other", async () => {
    const rawInput = { text: "x".repeat(5_000) };
    const fake = fakeAgent({
      limits,
      onPrompt: async (turn) => {
        for (let index = 0; index < 100; index += 1) {
          await turn.update(opened(index, { rawInput }));
          await turn.update({ ...opened(index), sessionUpdate: "tool_call_update", status: "completed" });
        }
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    const events = await eventsOf(agent, turnOf());
    expect(ofType(events, "tool_result")).toHaveLength(100);
    await scope.close();
  });

  it("slow the agent down by their size if their events aren't read", async () => {
    let sent = 0;
    const fake = fakeAgent({
      // Large enough for the open calls; the events that wait in the queue are what counts here.
      limits: { bufferedCharacters: 100_000 },
      onPrompt: async (turn) => {
        for (; sent < 100 && !turn.signal.aborted; sent += 1) {
          await turn.update(opened(sent, { rawInput: { text: "x".repeat(50_000) }, status: "completed" }));
        }
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    const turn = agent.prompt(turnOf())[Symbol.asyncIterator]();
    await turn.next();
    // Longer than a hundred updates take without backpressure.
    await new Promise((resume) => setTimeout(resume, 300));
    expect(sent).toBeLessThan(20);
    for (let next = await turn.next(); next.done !== true; next = await turn.next());
    expect(sent).toBe(100);
    await scope.close();
  });
});
