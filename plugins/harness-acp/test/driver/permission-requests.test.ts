import { type PermissionDecision, type PermissionQuestion, RunCancelled } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { endTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsFor } from "../support/fake-turns.js";
import { eventsOf, failureOf, ofType, turnOf } from "../support/runs.js";

const options = [
  { optionId: "always", name: "Always", kind: "allow_always" },
  { optionId: "once", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];

describe("a permission request", () => {
  const toolCall = { toolCallId: "c", title: "ls", kind: "execute", rawInput: { command: "ls" } };

  it("is answered with the option for one call, even if the call was never announced", async () => {
    const { events, asked } = await eventsFor(async (turn) => {
      await turn.ask({ toolCall, options });
      await turn.update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" });
      return endTurn;
    });
    expect(asked).toEqual([{ outcome: { outcome: "selected", optionId: "once" } }]);
    expect(ofType(events, "tool_call")).toEqual([
      { type: "tool_call", id: "c", name: "run", input: { command: "ls" } },
    ]);
  });

  it("ends when the agent withdraws it, for its user too", async () => {
    const taken = new AbortController();
    const withdrawals: unknown[] = [];
    const turn = {
      ...turnOf(),
      onPermission: (_question: PermissionQuestion, withdrawn?: AbortSignal) => {
        withdrawn?.addEventListener("abort", () => withdrawals.push("withdrawn"), { once: true });
        taken.abort();
        return new Promise<PermissionDecision>(() => {});
      },
    };
    const fake = fakeAgent({
      onPrompt: async ({ ask }) => {
        await ask({ toolCall, options }, taken.signal).catch(() => undefined);
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    const events = await eventsOf(agent, turn);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "end_turn" });
    expect(withdrawals).toEqual(["withdrawn"]);
    await scope.close();
  });

  it("that arrives twice for one call is decided twice, and counts as one call", async () => {
    const turn = turnOf();
    const { events, asked } = await eventsFor(async (fake) => {
      await fake.ask({ toolCall, options });
      await fake.ask({ toolCall, options });
      await fake.update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" });
      return endTurn;
    }, turn);
    const once = { outcome: { outcome: "selected", optionId: "once" } };
    expect(asked).toEqual([once, once]);
    expect(turn.questions).toHaveLength(2);
    expect(ofType(events, "tool_call")).toHaveLength(1);
    expect(ofType(events, "tool_result")).toHaveLength(1);
  });

  it("is answered by its own id among others at once, whatever ids those are", async () => {
    // A number and the same as a text are two ids, and JSON-RPC allows any text and any number.
    const ids = [
      0,
      "0",
      -1,
      1.5,
      9_007_199_254_740_991,
      "",
      " ",
      "\u0000",
      "ünïcode",
      "__proto__",
      "a".repeat(200),
    ];
    const answered = new Map<unknown, unknown>();
    let all = () => {};
    const done = new Promise<void>((resolve) => {
      all = resolve;
    });
    const turn = turnOf();
    const { agent, scope } = await fakeAgent({
      onMessage: (line) => {
        const { id, result } = JSON.parse(line);
        if (result?.outcome === undefined) return false;
        answered.set(id, result.outcome);
        if (answered.size === ids.length) all();
        return true;
      },
      onPrompt: async ({ line, sessionId }) => {
        const params = (at: number) => ({
          sessionId,
          toolCall: { ...toolCall, toolCallId: `c${at}` },
          options: options.map((option) => ({ ...option, optionId: `${option.optionId}-${at}` })),
        });
        const method = "session/request_permission";
        await Promise.all(
          ids.map((id, at) => line(JSON.stringify({ jsonrpc: "2.0", id, method, params: params(at) }))),
        );
        await done;
        return endTurn;
      },
    }).start();
    await eventsOf(agent, turn);
    await scope.close();
    expect(turn.questions).toHaveLength(ids.length);
    expect([...answered].sort()).toEqual(
      ids.map((id, at) => [id, { outcome: "selected", optionId: `once-${at}` }]).sort(),
    );
  });

  it("that is repeated for a denied call is denied, without another question", async () => {
    const turn = turnOf({ answer: "deny" });
    const { events, asked } = await eventsFor(async (fake) => {
      await fake.ask({ toolCall, options });
      await fake.ask({ toolCall: { ...toolCall, rawInput: { command: "rm" } }, options });
      return endTurn;
    }, turn);
    expect(asked).toMatchObject([{ outcome: { optionId: "no" } }, { outcome: { outcome: "cancelled" } }]);
    expect(turn.questions).toHaveLength(1);
    expect(ofType(events, "tool_result")).toMatchObject([{ denied: true, isError: true }]);
  });

  it("is answered even if an option has a kind that ACP doesn't define", async () => {
    const { asked } = await eventsFor(async (turn) => {
      await turn.ask({
        toolCall,
        options: [{ optionId: "x", name: "X", kind: "allow_on_tuesdays" }, ...options],
      });
      return endTurn;
    });
    expect(asked).toEqual([{ outcome: { outcome: "selected", optionId: "once" } }]);
  });

  it("is denied if only an answer for always is offered", async () => {
    const { asked, events } = await eventsFor(async (turn) => {
      await turn.ask({ toolCall, options: [options[0], options[2]] });
      return endTurn;
    });
    expect(asked).toEqual([{ outcome: { outcome: "selected", optionId: "no" } }]);
    expect(ofType(events, "tool_result")).toMatchObject([{ denied: true, isError: true }]);
  });

  it("that is denied gives one result, whatever the agent reports about the call afterwards", async () => {
    const { events } = await eventsFor(
      async (turn) => {
        await turn.ask({ toolCall, options });
        await turn.update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "failed" });
        return endTurn;
      },
      turnOf({ answer: "deny" }),
    );
    expect(ofType(events, "tool_result")).toMatchObject([{ denied: true, isError: true }]);
  });

  it("that is still open is answered on cancel, after the agent was notified", async () => {
    const abort = new AbortController();
    const { received, asked, events } = await eventsFor(
      async (turn) => {
        await turn.ask({ toolCall, options });
        return { stopReason: turn.signal.aborted ? "cancelled" : "end_turn" };
      },
      turnOf({
        signal: abort.signal,
        answer: () => {
          abort.abort(new RunCancelled("cancelled"));
          return new Promise<PermissionDecision>(() => {});
        },
      }),
    );
    expect(received).toEqual(["session/cancel"]);
    expect(asked).toEqual([{ outcome: { outcome: "cancelled" } }]);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "cancelled" });
  });

  it("of two at once: one is parked, both are answered, no call gets a result", async () => {
    let bothAsked = () => {};
    const both = new Promise<void>((resolve) => {
      bothAsked = resolve;
    });
    const { asked, events } = await eventsFor(
      async (turn) => {
        await Promise.all([
          turn.ask({ toolCall, options }),
          turn.ask({ toolCall: { ...toolCall, toolCallId: "d" }, options }),
        ]);
        await turn.update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "failed" });
        return { stopReason: "cancelled" };
      },
      turnOf({
        answer: async ({ toolCallId }) => {
          if (toolCallId === "d") bothAsked();
          await both;
          return toolCallId === "c" ? "park" : await new Promise<PermissionDecision>(() => {});
        },
      }),
    );
    expect(asked).toEqual([{ outcome: { outcome: "cancelled" } }, { outcome: { outcome: "cancelled" } }]);
    expect(ofType(events, "tool_call")).toHaveLength(2);
    expect(ofType(events, "tool_result")).toHaveLength(0);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "paused" });
  });

  it("that can't be decided fails the turn with the error of the decision", async () => {
    const fake = fakeAgent({
      onPrompt: async (turn) => {
        await turn.ask({ toolCall, options });
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    const decide = () => Promise.reject(new RunCancelled("the decider's own"));
    const { error } = await failureOf(agent, turnOf({ answer: decide }));
    expect(error).toMatchObject({ message: "the decider's own" });
    expect(fake.asked).toEqual([{ outcome: { outcome: "cancelled" } }]);
    await scope.close();
  });

  it("outside a turn is denied", async () => {
    const fake = fakeAgent({
      onPrompt: async () => endTurn,
      onLoad: async (turn) => {
        await turn.ask({ toolCall, options });
        return {};
      },
      resume: "s0",
    });
    const { scope } = await fake.start();
    expect(fake.asked).toEqual([{ outcome: { outcome: "cancelled" } }]);
    await scope.close();
  });
});
