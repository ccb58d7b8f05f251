import { done, forever, type Script, untilAborted } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { asks, client, questions } from "../../fakes/parked-calls.js";
import { createWorld, eventsOf, type Told, type World, type WorldOptions } from "../../fakes/world.js";

interface Block {
  readonly type: "tool_call" | "tool_result";
  readonly toolCallId: string;
  readonly [key: string]: unknown;
}

/** A conversation of one world, whose messages are those that a platform sends: every question is answered at once. */
class Conversation {
  readonly messages: { readonly role: string; readonly content: string | readonly Block[] }[] = [
    { role: "user", content: "go" },
  ];

  constructor(
    readonly world: World,
    readonly body: object,
  ) {}

  /** One turn. @param answer of a question; undefined leaves it open. */
  async turn(answer: (toolName: string) => unknown = () => ({ approved: true })): Promise<Told> {
    const recorded = await this.world.run({ ...this.body, messages: this.messages });
    const called = eventsOf(recorded, "tool_call").map(
      ({ id, name, input }): Block => ({ type: "tool_call", toolCallId: id, toolName: name, input }),
    );
    const results = [
      ...eventsOf(recorded, "tool_result").map(
        ({ id, output }): Block => ({ type: "tool_result", toolCallId: id, output }),
      ),
      ...questions(recorded).flatMap(({ id, payload }): Block[] => {
        const output = answer(payload?.toolName ?? "");
        return output === undefined ? [] : [{ type: "tool_result", toolCallId: id, output }];
      }),
    ];
    if (called.length > 0) this.messages.push({ role: "assistant", content: called });
    if (results.length > 0) this.messages.push({ role: "tool", content: results });
    return recorded;
  }
}

const tool = (name: string) => ({ name, callRef: "ref", permission: "ask" });
const conversation = async (script: Script, options: WorldOptions = {}, body: object = {}) =>
  new Conversation(await createWorld({ script, ...options }), body);

/** Makes the calls in parallel, and reports each and its result, as demo and Codex do. */
const parallel = (...names: readonly string[]): Script =>
  async function* ({ tools, signal }) {
    for (const name of names) yield { type: "tool_call", id: name, name, input: {} };
    const outcomes = names.map((name) => tools().call(name, {}, { id: name, signal }));
    for (const [index, name] of names.entries()) {
      const outcome = await untilAborted(signal, outcomes[index] ?? forever());
      if (outcome === undefined) {
        yield { type: "done", stopReason: "cancelled" };
        return;
      }
      yield { type: "tool_result", id: name, ...outcome };
    }
    yield done;
  };

/** Asks before each call and makes it, one after the other; a stop makes it drop what it got, like Gemini. */
const oneByOne = (...names: readonly string[]): Script =>
  async function* ({ ask, tools, signal }) {
    for (const name of names) {
      yield { type: "tool_call", id: name, name, input: {} };
      const answer = await ask({ toolCallId: name, toolName: name, server: "ambit", input: {} });
      if (answer !== "allow") {
        yield { type: "done", stopReason: "cancelled" };
        return;
      }
      const outcome = await untilAborted(signal, tools().call(name, {}, { id: name }));
      if (outcome !== undefined) yield { type: "tool_result", id: name, ...outcome };
    }
    yield done;
  };

const executed = ({ world }: Conversation) => world.callback.calls.map(({ tool: { name } }) => name);

describe("answers to parallel calls", () => {
  test("are each used once by an agent that asks for one after the other, whatever it repeats", async () => {
    const names = ["book", "seat", "meal"];
    const chat = await conversation(oneByOne(...names), {}, { customTools: names.map(tool) });
    for (const expected of [[], ["book"], ["book", "seat"]]) {
      expect((await chat.turn()).result.stopReason).toBe("paused");
      expect(executed(chat)).toEqual(expected);
    }
    const last = await chat.turn();
    expect(last.result).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(executed(chat)).toEqual(names);
    // The calls that it repeats get their outcome again, without another question.
    expect(questions(last)).toEqual([]);
    expect(eventsOf(last, "tool_result").map(({ output }) => output)).toEqual(["{}", "{}", "{}"]);
  });

  test("are each used once by an agent that makes them at once", async () => {
    const names = ["book", "seat", "meal"];
    const chat = await conversation(parallel(...names), {}, { customTools: names.map(tool) });
    const first = await chat.turn();
    expect(questions(first)).toHaveLength(3);
    expect((await chat.turn()).result.stopReason).toBe("end_turn");
    expect(executed(chat).toSorted()).toEqual(names.toSorted());
  });

  test("say nothing about a call that a rule allows: repeated after a pause, it is executed again", async () => {
    const look = { name: "look", callRef: "ref", permission: "allow" };
    const chat = await conversation(parallel("look", "book"), {}, { customTools: [look, tool("book")] });
    expect((await chat.turn()).result.stopReason).toBe("paused");
    expect(executed(chat)).toEqual(["look"]);
    expect((await chat.turn()).result.stopReason).toBe("end_turn");
    expect(executed(chat).toSorted()).toEqual(["book", "look", "look"]);
  });

  test("outlive a turn that asks something else", async () => {
    const names = ["book", "seat"];
    const scripts = [parallel("book"), parallel("seat"), parallel("book", "seat")];
    const chat = await conversation(parallel(), { script: scripts }, { customTools: names.map(tool) });
    for (const expected of [[], []]) {
      expect((await chat.turn()).result.stopReason).toBe("paused");
      expect(executed(chat)).toEqual(expected);
    }
    const last = await chat.turn();
    expect(last.result.stopReason).toBe("end_turn");
    expect(questions(last)).toEqual([]);
    expect(executed(chat).toSorted()).toEqual(names);
  });

  test("that come after an approval and a client tool in any order aren't lost", async () => {
    const body = { customTools: [asks, client] };
    const chat = await conversation(parallel("send", "pick"), {}, body);
    // The approval only: the client tool asks again, and the approved call finishes before the turn pauses.
    const slow = Promise.withResolvers<void>();
    chat.world.callback.behaviour.execute = async () => {
      await slow.promise;
      return { status: "completed", output: "sent" };
    };
    await chat.turn((name) => (name === "send" ? { approved: true } : undefined));
    const second = chat.turn((name) => (name === "pick" ? "Bern" : undefined));
    await expect.poll(() => executed(chat)).toEqual(["send"]);
    await new Promise((resolve) => setTimeout(resolve, 250));
    slow.resolve();
    expect((await second).result.stopReason).toBe("paused");
    expect(eventsOf(await second, "tool_result")).toMatchObject([{ output: "sent", isError: false }]);
    const third = await chat.turn();
    expect(third.result.stopReason).toBe("end_turn");
    expect(executed(chat)).toEqual(["send"]);
    expect(eventsOf(third, "tool_result").map(({ output }) => output)).toEqual(["sent", "Bern"]);
  });

  test("of which a refusal counts as often as its call is repeated", async () => {
    const names = ["book", "seat"];
    const chat = await conversation(
      async function* ({ ask, signal }) {
        for (const name of names) {
          const question = { toolCallId: name, toolName: name, server: "ambit", input: {} };
          yield { type: "message", text: `${name}: ${await ask(question)}` };
          if (signal.aborted) return;
        }
        yield done;
      },
      {},
      { customTools: names.map(tool) },
    );
    await chat.turn(() => ({ approved: false }));
    await chat.turn(() => ({ approved: false }));
    const last = await chat.turn();
    expect(last.result.output).toBe("book: deny\n\nseat: deny");
    expect(questions(last)).toEqual([]);
  });
});

describe("a call that is allowed when the turn pauses", () => {
  test("has a limited time; then its outcome is unknown, and it isn't made again", async () => {
    const body = { customTools: [asks, client] };
    const chat = await conversation(parallel("send", "pick"), { limits: { pauseMs: 60, closeMs: 60 } }, body);
    chat.world.callback.behaviour.execute = forever;
    await chat.turn((name) => (name === "send" ? { approved: true } : undefined));
    const second = await chat.turn(() => undefined);
    expect(eventsOf(second, "tool_result")).toMatchObject([
      { output: expect.stringMatching(/^APPROVED_EXECUTION_RESULT_UNKNOWN: /), isError: true },
    ]);
    chat.world.callback.behaviour.execute = async () => ({ status: "completed", output: "sent" });
    const third = await chat.turn();
    expect(third.result.stopReason).toBe("paused");
    expect(executed(chat)).toEqual(["send"]);
    // The user decides again, and knows why.
    expect(
      questions(third).map(({ payload }) => [payload?.toolName, payload?.earlierOutcome]),
    ).toContainEqual(["send", "unknown"]);
    expect(third.result.warnings).toMatchObject([{ message: expect.stringContaining("may have run") }]);
  });

  test("of the agent's own tools finishes too", async () => {
    const own = (name: string) => ({ toolCallId: name, toolName: name, input: { command: name } });
    const chat = await conversation(
      async function* ({ ask, tools, signal }) {
        yield { type: "tool_call", id: "Bash", name: "Bash", input: { command: "Bash" } };
        if ((await ask(own("Bash"))) !== "allow") return;
        const parked = tools().call("pick", {}, { id: "pick", signal });
        await new Promise((resolve) => setTimeout(resolve, 250));
        yield { type: "tool_result", id: "Bash", output: signal.aborted ? "killed" : "finished" };
        await untilAborted(signal, parked);
        yield { type: "done", stopReason: "cancelled" };
      },
      {},
      { customTools: [client] },
    );
    await chat.turn();
    const second = await chat.turn();
    expect(second.result.stopReason).toBe("paused");
    expect(eventsOf(second, "tool_result")).toMatchObject([{ output: "finished" }]);
  });
});

describe("an answer whose call isn't made", () => {
  test("counts again after the agent failed", async () => {
    const chat = await conversation(
      parallel(),
      {
        script: [
          parallel("send"),
          async function* () {
            yield { type: "thought", text: "hm" };
            throw new Error("the model can't be reached");
          },
          parallel("send"),
        ],
      },
      { customTools: [asks] },
    );
    await chat.turn();
    expect((await chat.turn()).result.ok).toBe(false);
    expect((await chat.turn()).result.stopReason).toBe("end_turn");
    expect(executed(chat)).toEqual(["send"]);
  });

  test("counts again after the agent dropped an allowed call", async () => {
    const chat = await conversation(
      parallel(),
      {
        script: [
          oneByOne("send"),
          async function* ({ ask, tools, signal }) {
            await ask({ toolCallId: "send", toolName: "send", server: "ambit", input: {} });
            await untilAborted(signal, tools().call("pick"));
            yield { type: "done", stopReason: "cancelled" };
          },
          oneByOne("send"),
        ],
      },
      { customTools: [asks, client] },
    );
    await chat.turn();
    expect((await chat.turn(() => undefined)).result.stopReason).toBe("paused");
    const last = await chat.turn();
    expect(last.result.stopReason).toBe("end_turn");
    expect(questions(last)).toEqual([]);
    expect(executed(chat)).toEqual(["send"]);
  });

  test("is named in a result that says nothing else", async () => {
    const dropped: Script = async function* ({ ask, tools }) {
      tools();
      yield { type: "tool_call", id: "send", name: "send", input: {} };
      await ask({ toolCallId: "send", toolName: "send", server: "ambit", input: {} });
      yield done;
    };
    const chat = await conversation(dropped, {}, { customTools: [asks] });
    await chat.turn();
    const { result } = await chat.turn();
    expect(result).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(result.warnings).toMatchObject([{ path: "harness" }]);
  });
});
