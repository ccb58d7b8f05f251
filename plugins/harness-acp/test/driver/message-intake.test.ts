import { HarnessFailed } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { defaultDriverLimits, MessageIntake } from "../../src/driver/limits.js";
import { chunk, endTurn, type FakeTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsOf, failureOf, turnOf } from "../support/runs.js";

/** An update whose text holds `values`, within the limit of characters. */
function updateOf(turn: FakeTurn, values: string): Promise<void> {
  const { sessionId } = turn;
  return turn.line(
    `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"${sessionId}","update":{"sessionUpdate":"tool_call","toolCallId":"a","title":"a","status":"completed","rawOutput":${values}}}}`,
  );
}

describe("what an agent's message may cost", () => {
  it.each([
    { what: "many small values", values: `[${"{},".repeat(600_000)}{}]`, says: "50,000 values" },
    { what: "many keys", values: `{${'"":0,'.repeat(600_000)}"":0}`, says: "50,000 values" },
    { what: "endless nesting", values: "[".repeat(1_000_000), says: "256 levels" },
  ])("$what fail the run before they are parsed", async ({ values, says }) => {
    const fake = fakeAgent({
      limits: defaultDriverLimits,
      onPrompt: async (turn) => {
        await updateOf(turn, values);
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    const { error } = await failureOf(agent, turnOf());
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(String(error)).toContain(`The fake sent a message that holds more than ${says}`);
    await scope.close();
  });

  it("is no matter for a line that isn't a message", async () => {
    const fake = fakeAgent({
      onPrompt: async (turn) => {
        await turn.line("[".repeat(10_000));
        await turn.update(chunk("done"));
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    const events = await eventsOf(agent, turnOf());
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "end_turn" });
    await scope.close();
  });

  it("counts small values of open calls as what they take in memory", async () => {
    const fake = fakeAgent({
      limits: { openCallCharacters: 1_000_000 },
      onPrompt: async (turn) => {
        const rawInput = Array.from({ length: 3_000 }, () => ({}));
        for (let at = 0; at < 20; at += 1)
          await turn.update({ sessionUpdate: "tool_call", toolCallId: `c${at}`, title: "a", rawInput });
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    const { error } = await failureOf(agent, turnOf());
    expect(String(error)).toContain("calls of more than 1000000 characters open at once");
    await scope.close();
  });
});

describe("what all agents' messages may hold", () => {
  const limits = { ...defaultDriverLimits, messageCharacters: 1_000_000, heldCharacters: 1_500_000 };
  const beginning = `{"text":"${"x".repeat(100_000)}`;

  it("fails the run with the longest unfinished message, and no other", async () => {
    const intake = new MessageIntake(limits);
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    /** Each begins a message and waits before it ends it. */
    const agentWith = async (pieces: number) => {
      const fake = fakeAgent({
        intake,
        onPrompt: async (turn) => {
          for (let at = 0; at < pieces; at += 1) await turn.piece("x".repeat(100_000));
          await finished;
          await turn.line("");
          await turn.update(chunk("done"));
          return endTurn;
        },
      });
      const { agent, scope } = await fake.start();
      return { agent, scope };
    };
    const small = await agentWith(2);
    const large = await agentWith(9);
    const other = await agentWith(7);
    const smallEnd = eventsOf(small.agent, turnOf());
    const largeEnd = failureOf(large.agent, turnOf());
    const otherEnd = eventsOf(other.agent, turnOf());
    const { error } = await largeEnd;
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(String(error)).toContain("those of all agents had more than 1,500,000 characters");
    finish();
    for (const events of await Promise.all([smallEnd, otherEnd]))
      expect(events.at(-1)).toEqual({ type: "done", stopReason: "end_turn" });
    await Promise.all([small, large, other].map(({ scope }) => scope.close()));
  });

  it("is free again when an agent ends", () => {
    const intake = new MessageIntake(limits);
    const refused: string[] = [];
    for (let at = 0; at < 10; at += 1) {
      const line = intake.line(({ message }) => refused.push(message));
      line.hold(beginning.length * 9);
      line.end();
    }
    expect(refused).toEqual([]);
  });
});
