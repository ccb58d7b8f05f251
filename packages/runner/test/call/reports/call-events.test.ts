import { RunCancelled } from "@ambit/core";
import type { AgentEvent } from "@ambit/core/contract";
import { calls, done, type Script, untilAborted } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { asks, client, given, questions, withAnswer } from "../../fakes/parked-calls.js";
import { createWorld, eventsOf, recordsOf } from "../../fakes/world.js";

const connection = { type: "http", url: "https://docs.example/mcp" };
const asking = { name: "docs", connection, policy: { permission: "ask" } };
const issued = expect.stringMatching(/^ask_/);

/** Reports a call, makes it, and then sends the given reports. */
const reporting = (name: string, ...after: Parameters<typeof eventsOf>[0]["events"]): Script =>
  async function* ({ tools, signal }) {
    yield { type: "tool_call", id: "agents-own", name, input: given };
    await untilAborted(signal, tools().call(name, given));
    yield* after;
    yield done;
  };

describe("after the turn paused", () => {
  test.each([
    ["whatever result the agent gives for the parked call", { id: "agents-own", output: "sent" }],
    ["a failure of a call that it still had open", { id: "bash", output: "aborted", isError: true }],
  ])("the caller doesn't read %s", async (_what, result) => {
    const script: Script = async function* (turn) {
      yield { type: "tool_call", id: "bash", name: "Bash", input: {} };
      yield* reporting("send", { type: "tool_result", ...result })(turn);
    };
    const recorded = await (await createWorld({ script })).run({ customTools: [asks] });
    expect(eventsOf(recorded, "tool_result")).toEqual([
      {
        type: "tool_result",
        id: "bash",
        output: expect.stringMatching(/^DEFERRED/),
        isError: true,
        settled: "deferred",
      },
    ]);
  });
});

describe("what a command prints", () => {
  test("comes after its call and before its result, and isn't repeated in the result's events", async () => {
    const script: Script = async function* () {
      yield { type: "tool_output", id: "never-reported", delta: "?" };
      yield { type: "tool_call", id: "bash", name: "Bash", input: { command: "make" } };
      yield { type: "tool_output", id: "bash", delta: "compiling\n" };
      yield { type: "tool_result", id: "bash", output: "compiling\ndone\n" };
      yield { type: "tool_output", id: "bash", delta: "late" };
      yield done;
    };
    const world = await createWorld({ script });
    const types = (await world.run({})).events.map(({ type }) => type);
    expect(types.slice(1)).toEqual(["tool_call", "tool_output", "tool_result", "done"]);
    const { result } = await world.run({}, true);
    expect(result.events.map(({ type }) => type)).not.toContain("tool_output");
  });
});

describe("a question about a call", () => {
  test("has the changes that the call would make, and the files that it names", async () => {
    const changes = [{ path: "/w/a.txt", oldText: "one", newText: "two" }];
    const locations = [{ path: "/w/a.txt", line: 3 }];
    const script: Script = async function* ({ ask }) {
      yield { type: "tool_call", id: "e", name: "Edit", input: {}, locations };
      await ask({ toolCallId: "e", toolName: "Edit", input: {}, changes, locations });
      yield done;
    };
    const recorded = await (await createWorld({ script })).run({ permissions: { default: "ask" } });
    expect(questions(recorded)).toMatchObject([{ payload: { toolName: "Edit", changes, locations } }]);
  });
});

describe("what a subagent does", () => {
  const nested: Script = async function* ({ ask, tools, signal }) {
    yield { type: "message", text: "I ask a subagent." };
    yield { type: "tool_call", id: "sub", name: "Agent", input: {} };
    await ask({ toolCallId: "sub", toolName: "Agent", input: {} });
    const within = { parentToolCallId: "sub" };
    yield { type: "message_start", id: "m", ...within };
    yield { type: "message_delta", id: "m", delta: "I am the subagent." };
    yield { type: "message_end", id: "m" };
    yield { type: "message", text: "And I send.", ...within };
    yield { type: "tool_call", id: "agents-own", name: "send", input: given, ...within };
    await untilAborted(signal, tools().call("send", given));
    yield done;
  };
  const answers = { interactions: { waitMs: 5_000 } };

  test("is nested under the call by its public id, with its question, and isn't the run's output", async () => {
    const world = await createWorld({ script: nested });
    const run = await world.admit({ customTools: [asks], permissions: { default: "ask" }, ...answers });
    const events: AgentEvent[] = [];
    for await (const record of recordsOf(run)) {
      if (record.kind !== "event") continue;
      const { event } = record;
      events.push(event);
      if (event.type !== "interaction_request") continue;
      if (event.payload?.toolName === "Agent") run.answer(event.id, { approved: true });
      else run.cancel(new RunCancelled("The run was cancelled.", "caller"));
    }
    const [parent, call] = eventsOf({ events }, "tool_call");
    expect(parent).toMatchObject({ id: issued, name: "Agent" });
    const parentToolCallId = parent?.id;
    expect(parent).not.toHaveProperty("parentToolCallId");
    expect(call).toMatchObject({ id: issued, name: "send", parentToolCallId });
    expect(eventsOf({ events }, "message_start")).toMatchObject([{ parentToolCallId }]);
    const [ofAgent, ofSubagent] = eventsOf({ events }, "message");
    expect(ofAgent).not.toHaveProperty("parentToolCallId");
    expect(ofSubagent).toMatchObject({ text: "And I send.", parentToolCallId });
    expect(eventsOf({ events }, "interaction_request").at(-1)).toMatchObject({
      payload: { toolName: "send", parentToolCallId },
    });
    expect(run.result).toMatchObject({ output: "I ask a subagent." });
  });

  test("comes after the call, also where that is held back; a result has its texts whole", async () => {
    const script: Script = async function* () {
      yield { type: "tool_call", id: "sub", name: "Agent", input: {} };
      yield { type: "thought_start", id: "t", parentToolCallId: "sub" };
      yield { type: "thought_delta", id: "t", delta: "Let me " };
      yield { type: "thought_delta", id: "t", delta: "look." };
      yield { type: "thought_end", id: "t" };
      yield { type: "tool_result", id: "sub", output: "found" };
      yield { type: "message", text: "done" };
      yield done;
    };
    const world = await createWorld({ script });
    const { result } = await world.run({ permissions: { default: "ask" } }, true);
    expect(result.events.slice(1)).toMatchObject([
      { type: "tool_call", id: "sub" },
      { type: "thought", text: "Let me look.", parentToolCallId: "sub" },
      { type: "tool_result", id: "sub" },
      { type: "message", text: "done" },
      { type: "done" },
    ]);
    expect(result.output).toBe("done");
  });
});

describe("a call is announced", () => {
  test("again if its user is asked only after its announcement, and the first announcement ends", async () => {
    const world = await createWorld({ script: reporting("form") });
    world.callback.behaviour.execute = async () => ({ status: "parked", interaction: "user_input" });
    const recorded = await world.run({
      customTools: [{ name: "form", callRef: "ref", permission: "allow" }],
    });
    expect(eventsOf(recorded, "tool_call").map(({ id }) => id)).toEqual(["agents-own", issued]);
    expect(eventsOf(recorded, "tool_result")).toMatchObject([
      {
        id: "agents-own",
        output: expect.stringContaining("It continues under another id"),
        isError: true,
        settled: "deferred",
        movedTo: eventsOf(recorded, "tool_call")[1]?.id,
      },
    ]);
    expect(questions(recorded)).toMatchObject([
      { kind: "user_input", id: eventsOf(recorded, "tool_call")[1]?.id },
    ]);
  });

  test("before its stored answer, if the agent hasn't reported it", async () => {
    const world = await createWorld({
      script: async function* ({ tools }) {
        yield { type: "message", text: (await tools().call("send", given)).output };
        yield done;
      },
    });
    const recorded = await world.run({ customTools: [asks], messages: withAnswer({ approved: true }) });
    const types = recorded.events.map(({ type }) => type);
    expect(types.slice(1)).toEqual(["tool_call", "interaction_response", "message", "tool_result", "done"]);
    const [response] = eventsOf(recorded, "interaction_response");
    expect(eventsOf(recorded, "tool_call")).toMatchObject([{ resumes: response?.id }]);
  });

  test.each([
    ["with its arguments", [given]],
    ["first without its arguments", [{}, given]],
  ])("once, if it overtakes what the agent says before it and its report %s", async (_what, inputs) => {
    const world = await createWorld({
      script: async function* ({ tools }) {
        const made = tools().call("pick", given);
        // The call has reached the runner; what the agent said before is still on its way.
        await new Promise((resolve) => setTimeout(resolve, 20));
        yield { type: "message", text: "Which one?" };
        for (const input of inputs) yield { type: "tool_call", id: "agents-own", name: "pick", input };
        yield { type: "tool_result", id: "agents-own", output: `the agent's: ${(await made).output}` };
        yield done;
      },
    });
    const messages = withAnswer("blue", "pick");
    const recorded = await world.run({ customTools: [client], messages });
    const [announced, ...more] = eventsOf(recorded, "tool_call");
    expect(more).toEqual([]);
    expect(announced).toMatchObject({ name: "pick", input: given });
    expect(eventsOf(recorded, "tool_result")).toMatchObject([{ id: announced?.id, output: "blue" }]);
    expect(recorded.events.map(({ type }) => type).slice(1)).toEqual([
      "message",
      "tool_call",
      "interaction_response",
      "tool_result",
      "done",
    ]);
  });

  test("under the issued id only, if the user fulfils it, whatever the permissions are", async () => {
    const world = await createWorld({ script: reporting("pick") });
    const recorded = await world.run({ customTools: [client], permissions: { default: "allow" } });
    expect(eventsOf(recorded, "tool_call").map(({ id }) => id)).toEqual([issued]);
    expect(eventsOf(recorded, "tool_result")).toEqual([]);
  });

  test("under the issued id only, if its server's permission asks", async () => {
    const script = calls("search", given, { server: "docs" });
    const world = await createWorld({ script, harness: { supportsPermissionRequests: false } });
    const recorded = await world.run({ mcpServers: [asking], permissions: { default: "allow" } });
    expect(eventsOf(recorded, "tool_call").map(({ id }) => id)).toEqual([issued]);
    expect(questions(recorded)).toMatchObject([{ payload: { server: "docs" } }]);
  });

  test("as soon as it is decided without a question", async () => {
    const world = await createWorld({
      script: async function* ({ ask, tools }) {
        tools("docs").list();
        yield { type: "tool_call", id: "a", name: "search", input: {} };
        yield { type: "message", text: await ask({ toolCallId: "a", toolName: "search", input: {} }) };
        yield { type: "tool_result", id: "a", output: "found" };
        yield done;
      },
    });
    const recorded = await world.run({ mcpServers: [asking], permissions: { default: "allow" } });
    const types = recorded.events.map(({ type }) => type);
    expect(types.slice(1)).toEqual(["tool_call", "message", "tool_result", "done"]);
    expect(eventsOf(recorded, "message")).toMatchObject([{ text: "allow" }]);
  });

  test("separately for two simultaneous equal calls with one id", async () => {
    const world = await createWorld({
      script: async function* ({ tools }) {
        yield { type: "tool_call", id: "same", name: "look_up", input: given };
        const both = await Promise.all([1, 2].map(() => tools().call("look_up", given, { id: "same" })));
        yield { type: "tool_result", id: "same", output: both.map(({ output }) => output).join() };
        yield done;
      },
    });
    const ids: string[] = [];
    world.callback.behaviour.execute = async ({ id }) => {
      ids.push(id);
      return { status: "completed", output: `${ids.length}` };
    };
    const recorded = await world.run({
      customTools: [{ name: "look_up", callRef: "ref", permission: "allow" }],
    });
    expect(new Set(ids).size).toBe(2);
    expect(ids).toContain("same");
    expect(eventsOf(recorded, "tool_result")).toMatchObject([
      { id: "same", output: `${ids.indexOf("same") + 1}` },
    ]);
  });

  test("with the agent's id again, if the arguments were invalid at first", async () => {
    const world = await createWorld({
      script: async function* ({ tools }) {
        yield { type: "tool_call", id: "same", name: "send", input: {} };
        await tools().call("send", {}, { id: "same" });
        await tools().call("send", given, { id: "same" });
        yield done;
      },
    });
    const ids: string[] = [];
    world.callback.behaviour.execute = async ({ id }) => {
      ids.push(id);
      return { status: "completed", output: "sent" };
    };
    const inputSchema = { type: "object", required: ["to"] };
    const recorded = await world.run({
      customTools: [{ name: "send", callRef: "ref", permission: "allow", inputSchema }],
    });
    expect(recorded.result.ok).toBe(true);
    expect(ids).toEqual(["same"]);
  });
});
