import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { demo } from "../../src/profiles/demo.js";
import { chunk, endTurn, type FakeAgentOptions, type FakeTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsOf, ofType, textOf, turnOf } from "../support/runs.js";

const announced = {
  sessionUpdate: "tool_call",
  toolCallId: "c1",
  title: "ls",
  kind: "execute",
  status: "in_progress",
};
const resultOf = (text: string) => ({
  sessionUpdate: "tool_call_update",
  toolCallId: "c1",
  status: "completed",
  content: [{ type: "content", content: { type: "text", text } }],
});
const anyAgent = { profile: { quirks: { ...demo.quirks, staysInOrder: false } } };

/** An agent whose turns are these, in this order. `later` sends after the answer, once so many milliseconds have passed. */
async function agentOf(
  turns: readonly ((turn: FakeTurn, later: (ms: number, update: object) => void) => Promise<void> | void)[],
  options: Partial<FakeAgentOptions> = {},
) {
  const sent: Promise<void>[] = [];
  let index = 0;
  const fake = fakeAgent({
    ...options,
    onPrompt: async (turn) => {
      await turns[index++]?.(turn, (ms, update) => {
        sent.push(delay(ms).then(() => turn.update(update)));
      });
      return endTurn;
    },
  });
  const { agent, scope } = await fake.start();
  /** Settles when everything has been sent, and read: an agent's messages are read in order. */
  const allSent = async () => {
    await Promise.all(sent);
    await expect.poll(() => scope.logged.some(({ message }) => message.includes("had ended"))).toBe(true);
  };
  return { agent, scope, allSent, fake };
}

const late = (words: string) => `After the end of an earlier turn The fake sent ${words} of it: not shown.`;

describe("what an agent sends after its answer", () => {
  it("is the turn's, where the agent is known to do that", async () => {
    const { agent } = await agentOf([(_, later) => later(5, chunk("tail"))], anyAgent);
    const turn = turnOf();
    expect(textOf(await eventsOf(agent, turn))).toBe("tail");
    expect(turn.warnings).toEqual([]);
  });

  it("is the turn's, where it follows in the same moment", async () => {
    const { agent } = await agentOf(
      [(turn) => void queueMicrotask(() => queueMicrotask(() => void turn.update(chunk("tail"))))],
      anyAgent,
    );
    expect(textOf(await eventsOf(agent, turnOf()))).toBe("tail");
  });

  it.each([5, 60, 300, 900])(
    "is the turn's, as the result of a call that is open: after %i ms",
    async (ms) => {
      const { agent } = await agentOf([
        async (turn, later) => {
          await turn.update(announced);
          later(ms, resultOf("files"));
        },
      ]);
      expect(ofType(await eventsOf(agent, turnOf()), "tool_result")).toMatchObject([{ output: "files" }]);
    },
  );

  it.each([true, false])(
    "is asked for unless the agent is known to stay in order: %s",
    async (staysInOrder) => {
      const methods: unknown[] = [];
      const onMessage = (line: string) => {
        if (line !== "") methods.push(JSON.parse(line).method);
        return false;
      };
      const quirks = { ...demo.quirks, staysInOrder };
      const { agent } = await agentOf([() => {}], { onMessage, profile: { quirks } });
      await eventsOf(agent, turnOf());
      expect(methods.includes("_ambit/round_trip")).toBe(!staysInOrder);
    },
  );

  it("doesn't delay the end of a turn without it", async () => {
    const { agent } = await agentOf([() => {}]);
    await eventsOf(agent, turnOf());
    const before = performance.now();
    for (let turn = 0; turn < 20; turn += 1) await eventsOf(agent, turnOf());
    expect((performance.now() - before) / 20).toBeLessThan(40);
  });

  it.each([60, 300, 900])("is counted between two turns, and given to neither: after %i ms", async (ms) => {
    const { agent, scope, allSent } = await agentOf([
      (_, later) => {
        later(ms, chunk("late"));
        later(ms, { ...announced, toolCallId: "c2" });
      },
      (turn) => turn.update(chunk("second")),
    ]);
    expect(textOf(await eventsOf(agent, turnOf()))).toBe("");
    await allSent();
    const turn = turnOf();
    const second = await eventsOf(agent, turn);
    expect(textOf(second)).toBe("second");
    expect(ofType(second, "tool_call")).toEqual([]);
    const words = late("1 piece of text and 1 report of a tool call");
    expect(turn.warnings).toEqual([words]);
    expect(scope.logged).toContainEqual(expect.objectContaining({ level: "warn", message: words }));
  });

  it.each([5, 300, 900])(
    "isn't the next turn's, although that is prompted at once: after %i ms",
    async (ms) => {
      const { agent } = await agentOf(
        [
          (_, later) => later(60 + ms, chunk("late")),
          (turn) => turn.update(chunk("second")),
          (turn) => turn.update(chunk("third")),
        ],
        anyAgent,
      );
      await eventsOf(agent, turnOf());
      const turn = turnOf();
      expect(textOf(await eventsOf(agent, turn))).toBe("second");
      expect(turn.warnings).toEqual([late("1 piece of text")]);
      const third = turnOf();
      expect(textOf(await eventsOf(agent, third))).toBe("third");
      expect(third.warnings).toEqual([]);
    },
  );

  it("isn't the next turn's call, whose id it has", async () => {
    const { agent } = await agentOf(
      [
        (turn) => turn.update(announced),
        async (turn) => {
          await turn.update(resultOf("of the first"));
          await turn.update({ ...announced, rawInput: { command: "pwd" } });
          await turn.update(resultOf("of the second"));
        },
      ],
      { limits: { lateMs: 1 } },
    );
    expect(ofType(await eventsOf(agent, turnOf()), "tool_call")).toMatchObject([{ id: "c1" }]);
    const turn = turnOf();
    const second = await eventsOf(agent, turn);
    expect(ofType(second, "tool_call")).toMatchObject([{ id: "c1", input: { command: "pwd" } }]);
    expect(ofType(second, "tool_result")).toMatchObject([{ id: "c1", output: "of the second" }]);
    expect(turn.warnings).toEqual([late("1 report of a tool call")]);
  });

  it("is told from the call of a question that has its id", async () => {
    const { agent } = await agentOf(
      [
        (turn) => turn.update(announced),
        async (turn) => {
          const options = [{ optionId: "y", name: "yes", kind: "allow_once" }];
          await turn.ask({ toolCall: { toolCallId: "c1", title: "pwd" }, options });
          await turn.update(resultOf("of the second"));
        },
      ],
      { limits: { lateMs: 1 } },
    );
    await eventsOf(agent, turnOf());
    const turn = turnOf();
    expect(ofType(await eventsOf(agent, turn), "tool_result")).toMatchObject([{ output: "of the second" }]);
    expect(turn.warnings).toEqual([]);
  });

  it("isn't the next turn's after a cancel either", async () => {
    const { agent, allSent } = await agentOf([
      async (turn, later) => {
        await turn.update(announced);
        await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
        later(100, chunk("late"));
        later(100, resultOf("late"));
      },
      (turn) => turn.update(chunk("second")),
    ]);
    const abort = new AbortController();
    const first = [];
    for await (const event of agent.prompt(turnOf({ signal: abort.signal }))) {
      first.push(event);
      if (event.type === "tool_call") abort.abort();
    }
    expect(first.at(-1)).toMatchObject({ type: "done" });
    await allSent();
    const turn = turnOf();
    const second = await eventsOf(agent, turn);
    expect(textOf(second)).toBe("second");
    expect(ofType(second, "tool_result")).toEqual([]);
    expect(turn.warnings).toEqual([late("1 piece of text and 1 report of a tool call")]);
  });

  it("a question between two turns is refused, and named", async () => {
    const { agent, fake, scope, allSent } = await agentOf([
      (turn) =>
        void delay(30).then(() => turn.ask({ toolCall: { toolCallId: "c", title: "rm" }, options: [] })),
      () => {},
    ]);
    await eventsOf(agent, turnOf());
    await expect.poll(() => fake.asked).toEqual([{ outcome: { outcome: "cancelled" } }]);
    await allSent();
    expect(scope.logged.map(({ message }) => message)).toContain(
      "the agent asked for permission for a tool call (rm) outside of its turns: refused",
    );
    const turn = turnOf();
    await eventsOf(agent, turn);
    expect(turn.warnings).toEqual([late("1 question")]);
  });

  it("is logged at the end of the agent, if no turn follows", async () => {
    const { agent, scope, allSent } = await agentOf([(_, later) => later(60, chunk("late"))]);
    await eventsOf(agent, turnOf());
    await allSent();
    await agent.close();
    expect(scope.logged.map(({ message }) => message)).toContain(late("1 piece of text"));
  });
});

describe("a subagent whose agent names the call that began it", () => {
  const meta = {
    parentToolCallId: (id: string) => ({ _meta: { parentToolCallId: id } }),
    parentToolUseId: (id: string) => ({ _meta: { claudeCode: { parentToolUseId: id } } }),
  };

  it.each(["parentToolCallId", "parentToolUseId"] as const)(
    "by %s says and does everything within it",
    async (key) => {
      const within = meta[key];
      const delegated = { ...announced, title: "delegate" };
      const own = (toolCallId: string, status: string) => ({
        sessionUpdate: status === "pending" ? "tool_call" : "tool_call_update",
        toolCallId,
        status,
        title: "pwd",
      });
      const { agent } = await agentOf([
        async (turn) => {
          await turn.update(chunk("I "));
          // Its input may still come: a subagent that works already shows that it won't.
          await turn.update({ ...delegated, status: "pending" });
          await turn.update({ ...delegated, toolCallId: "c2" });
          await turn.update({ ...chunk("one"), ...within("c1") });
          await turn.update({ ...chunk("two"), ...within("c2") });
          await turn.update({ ...chunk(" more"), ...within("c1") });
          await turn.update(chunk("ask them."));
          await turn.update({ ...own("sub", "pending"), ...within("c1") });
          await turn.update(own("sub", "completed"));
          await turn.update(resultOf("one more"));
          await turn.update({ ...resultOf("two"), toolCallId: "c2" });
        },
      ]);
      const events = await eventsOf(agent, turnOf());
      const parents = new Map(
        ofType(events, "message_start").map(({ id, parentToolCallId = "" }) => [id, parentToolCallId]),
      );
      const texts = new Map<string, string>();
      for (const { id, delta } of ofType(events, "message_delta")) {
        const parent = parents.get(id) ?? "none";
        texts.set(parent, `${texts.get(parent) ?? ""}${delta}`);
      }
      expect(Object.fromEntries(texts)).toEqual({ "": "I ask them.", c1: "one more", c2: "two" });
      // Each text is one, although they came at the same time.
      expect([...parents.values()].toSorted()).toEqual(["", "", "c1", "c2"]);
      expect(
        ofType(events, "message_end")
          .map(({ id }) => id)
          .toSorted(),
      ).toEqual([...parents.keys()].toSorted());
      expect(ofType(events, "tool_call").map(({ id, parentToolCallId }) => [id, parentToolCallId])).toEqual([
        ["c2", undefined],
        ["c1", undefined],
        ["sub", "c1"],
      ]);
    },
  );

  it("in a session of its own says it there too", async () => {
    const { agent } = await agentOf([
      async (turn) => {
        await turn.update(announced);
        const update = { ...chunk("I am"), ...meta.parentToolCallId("c1") };
        const params = { sessionId: "sub", update };
        await turn.line(JSON.stringify({ jsonrpc: "2.0", method: "session/update", params }));
        await turn.update(resultOf("done"));
      },
    ]);
    const turn = turnOf();
    const events = await eventsOf(agent, turn);
    expect(ofType(events, "message_start")).toMatchObject([{ parentToolCallId: "c1" }]);
    expect(turn.warnings).toEqual([]);
  });
});

describe("a subagent, in a session of its own", () => {
  const ofSubagent = (turn: FakeTurn, update: object) =>
    turn.line(
      JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "sub", update } }),
    );

  it("its calls are shown beside those of the agent, its texts are counted", async () => {
    const { agent } = await agentOf([
      async (turn) => {
        await turn.update(announced);
        await ofSubagent(turn, { ...announced, title: "pwd" });
        await ofSubagent(turn, resultOf("of the subagent"));
        await ofSubagent(turn, chunk("I am"));
        await ofSubagent(turn, { sessionUpdate: "available_commands_update", availableCommands: [] });
        await turn.update(resultOf("of the agent"));
        await turn.update(chunk("done"));
      },
    ]);
    const turn = turnOf();
    const events = await eventsOf(agent, turn);
    expect(textOf(events)).toBe("done");
    expect(ofType(events, "tool_result").map(({ id, output }) => [id, output])).toEqual([
      ["sub/c1", "of the subagent"],
      ["c1", "of the agent"],
    ]);
    expect(ofType(events, "tool_call").map(({ id }) => id)).toEqual(["c1", "sub/c1"]);
    expect(turn.warnings).toEqual(["The agent's subagents sent 1 piece of text: not shown."]);
  });

  it("its questions are asked", async () => {
    const { agent, fake } = await agentOf([
      async (turn) => {
        const options = [{ optionId: "y", name: "yes", kind: "allow_once" }];
        await turn.ask({ sessionId: "sub", toolCall: { toolCallId: "c1", title: "rm" }, options });
        await turn.elicit({ sessionId: "sub", mode: "url", message: "Log in", url: "https://example.com/" });
      },
    ]);
    const inputs: string[] = [];
    const turn = turnOf({
      onInput: async ({ message }) => {
        inputs.push(message);
        return { action: "decline" };
      },
    });
    await eventsOf(agent, turn);
    expect(turn.questions).toMatchObject([{ toolCallId: "sub/c1" }]);
    expect(fake.asked).toEqual([{ outcome: { outcome: "selected", optionId: "y" } }]);
    expect(inputs).toEqual(["Log in"]);
  });
});
