import { done, forever, type Script, untilAborted } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { asks, client, questions } from "../../fakes/parked-calls.js";
import { createWorld, eventsOf, type Told } from "../../fakes/world.js";

const bash = (id: string) => ({ toolCallId: id, toolName: "Bash", input: { command: id } });
const answered = (recorded: Told, approved = true) => [
  { role: "user", content: "go" },
  {
    role: "assistant",
    content: eventsOf(recorded, "tool_call").map(({ id, name, input }) => ({
      type: "tool_call",
      toolCallId: id,
      toolName: name,
      input,
    })),
  },
  {
    role: "tool",
    content: questions(recorded).map(({ id }) => ({
      type: "tool_result",
      toolCallId: id,
      output: { approved },
    })),
  },
];

describe("a question while the turn is pausing for another", () => {
  /** One after the other: each is parked before the next is asked. */
  const asksTwice: Script = async function* ({ ask }) {
    yield { type: "message", text: await ask(bash("one")) };
    yield { type: "message", text: await ask(bash("two")) };
    yield done;
  };
  /** The second call comes when the first is parked. */
  const callsTwice: Script = async function* ({ tools, signal }) {
    void tools().call("send", { to: "ann" });
    await untilAborted(signal, forever());
    void tools().call("send", { to: "bob" });
    await new Promise((resolve) => setTimeout(resolve, 20));
    yield { type: "done", stopReason: "cancelled" };
  };

  test("from the agent is announced as well, and one turn can bring both answers", async () => {
    const world = await createWorld({ script: asksTwice });
    const first = await world.run();
    expect(first.result.stopReason).toBe("paused");
    expect(questions(first).map(({ payload }) => payload)).toMatchObject([
      { input: { command: "one" } },
      { input: { command: "two" } },
    ]);
    expect(eventsOf(first, "tool_result")).toEqual([]);
    const second = await world.run({ messages: answered(first) });
    expect(eventsOf(second, "message").map(({ text }) => text)).toEqual(["allow", "allow"]);
  });

  test("about a published tool is announced as well, and neither call is executed before", async () => {
    const world = await createWorld({ script: callsTwice });
    const first = await world.run({ customTools: [asks] });
    expect(first.result.stopReason).toBe("paused");
    expect(questions(first).map(({ payload }) => payload)).toMatchObject([
      { input: { to: "ann" } },
      { input: { to: "bob" } },
    ]);
    expect(world.callback.calls).toEqual([]);
  });

  test("isn't asked for a call that is already decided, for invalid arguments, or for a client tool", async () => {
    const others = [
      { name: "free", callRef: "ref", permission: "allow" },
      { name: "denied", callRef: "ref", permission: "deny" },
      {
        name: "strict",
        callRef: "ref",
        permission: "ask",
        inputSchema: { type: "object", required: ["to"] },
      },
      client,
    ];
    const outcomes: unknown[] = [];
    const world = await createWorld({
      limits: { closeMs: 20_000 },
      script: async function* ({ tools, signal }) {
        void tools().call("send", { to: "ann" });
        await untilAborted(signal, forever());
        for (const { name } of others) outcomes.push((await tools().call(name, {})).output.split(":")[0]);
        yield { type: "done", stopReason: "cancelled" };
      },
    });
    const recorded = await world.run({ customTools: [asks, ...others] });
    expect(questions(recorded)).toHaveLength(1);
    await expect.poll(() => outcomes, { timeout: 10_000 }).toEqual(others.map(() => "DEFERRED_NOT_EXECUTED"));
    expect(world.callback.calls).toEqual([]);
  });

  test("is bounded in number", async () => {
    const world = await createWorld({
      script: async function* ({ ask }) {
        for (let index = 0; index < 100; index += 1) await ask(bash(`${index}`));
        yield done;
      },
    });
    expect(questions(await world.run())).toHaveLength(33);
  });

  test("has no time limit: only the next turn can answer it", async () => {
    const world = await createWorld({ script: asksTwice });
    const recorded = await world.run({ interactions: { waitMs: 30 } });
    const [held, late] = questions(recorded).map(({ payload }) => payload);
    expect(held).toHaveProperty("expiresAt");
    expect(late).not.toHaveProperty("expiresAt");
  });
});
