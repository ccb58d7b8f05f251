import { call } from "@ambit/model-server";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answering, asking, type GivenAnswer, startAgent } from "../support/agents.js";
import { startClock } from "../support/clock.js";
import { type Platform, startPlatform } from "../support/platform.js";
import { Stage } from "../support/stage.js";
import { callbackTool, clientTool } from "../support/tools.js";

let stage: Stage;
let platform: Platform;
beforeAll(async () => {
  [stage, platform] = await Promise.all([Stage.open({ limits: { sessionTtlMs: 60_000 } }), startPlatform()]);
});
afterAll(async () => {
  await stage.close();
  await platform[Symbol.asyncDispose]();
});
beforeEach(() => {
  platform.calls.length = 0;
});

const given = { to: "ann" };
const send = (script: string) => `${script} send ${JSON.stringify(given)}`;

/** In one session, so that the agent starts once. */
function requestWith(more: object): object {
  const customTools = [callbackTool("send", { permission: "ask" }), clientTool("pick")];
  const toolCallback = { endpoint: platform.endpoint };
  return { harness: "demo", sessionId: "answers", customTools, toolCallback, ...more };
}

// With `call!` the agent asks first, like Gemini; with `call` it never asks, like Codex here.
describe.each(["call!", "call"])("a call with `%s` that needs an approval", (verb) => {
  const answered = async (output: unknown, next = send(verb), input: object = given) => {
    const asked = `${verb} send ${JSON.stringify(input)}`;
    const paused = await stage.run(requestWith(asking(asked)));
    return stage.run(requestWith(answering(asked, [{ tool: "send", input, output }], next, paused)));
  };

  it("pauses the run, without a result for the call, and executes nothing", async () => {
    const run = await stage.run(requestWith(asking(send(verb))));
    expect(await run.result).toMatchObject({ ok: true, stopReason: "paused" });
    expect(run.of("interaction_request")).toMatchObject([
      { kind: "user_approval", payload: { toolName: "send", input: given } },
    ]);
    expect(run.of("tool_call")).toHaveLength(1);
    expect(run.of("tool_result")).toEqual([]);
    expect(run.events.at(-1)).toMatchObject({ type: "done", stopReason: "paused" });
    expect(platform.calls).toEqual([]);
  });

  it("is executed after the user's approval, which is reported", async () => {
    const run = await answered({ approved: true });
    expect((await run.result).stopReason).toBe("end_turn");
    expect(platform.calls).toEqual([{ name: "ref__send", arguments: given }]);
    expect(run.of("interaction_response")).toMatchObject([
      { kind: "user_approval", payload: { toolName: "send", approved: true } },
    ]);
  });

  it("isn't executed after the user's refusal, and the agent continues", async () => {
    const run = await answered({ approved: false }, `${send(verb)}\nsay going on`);
    expect(await run.result).toMatchObject({
      stopReason: "end_turn",
      output: expect.stringContaining("going on"),
    });
    expect(run.resultsOf("send")).toMatchObject([{ denied: true, isError: true }]);
    expect(platform.calls).toEqual([]);
  });

  it("needs another approval when it is repeated", async () => {
    const run = await answered({ approved: true }, `${send(verb)}\n${send(verb)}`);
    expect((await run.result).stopReason).toBe("paused");
    expect(platform.calls).toHaveLength(1);
    expect(run.of("interaction_request")).toHaveLength(1);
  });

  it.each([
    ["for other arguments", { to: "bob" }, { approved: true }],
    ["that isn't about an approval", given, "approved"],
    ["whose approval isn't a boolean", given, { approved: "true" }],
    ["that is the runner's own text", given, "DEFERRED_NOT_EXECUTED: the turn paused"],
  ])("isn't executed after an answer %s", async (_what, input, output) => {
    const run = await answered(output, send(verb), input);
    expect((await run.result).stopReason).toBe("paused");
    expect(platform.calls).toEqual([]);
  });

  it("isn't executed after an answer from an earlier turn", async () => {
    const paused = await stage.run(requestWith(asking(send(verb))));
    const { messages } = answering(
      send(verb),
      [{ tool: "send", input: given, output: { approved: true } }],
      "",
      paused,
    );
    const later = [
      ...messages.slice(0, -1),
      { role: "assistant", content: "Sent." },
      { role: "user", content: send(verb) },
    ];
    const run = await stage.run(requestWith({ messages: later }));
    expect((await run.result).stopReason).toBe("paused");
    expect(platform.calls).toEqual([]);
  });
});

describe("answers to client tools", () => {
  const answers: GivenAnswer[] = [
    { tool: "pick", input: { n: 1 }, output: "first" },
    { tool: "pick", input: { n: 1 }, output: "second" },
    { tool: "pick", input: { n: 2 }, output: { other: true } },
  ];

  it("are matched by name and arguments, the oldest first, each once", async () => {
    const next = ['{"n":2}', '{ "n" : 1 }', '{"n":1}', '{"n":1}']
      .map((input) => `call pick ${input}`)
      .join("\n");
    // Held open, so that one run asks all of them.
    const waitMs = 30_000;
    const calls = answers.map(({ input }) => `& call pick ${JSON.stringify(input)}`).join("\n");
    using clock = startClock();
    const paused = await stage.begin(requestWith({ ...asking(calls), interactions: { waitMs } }));
    await paused.until("interaction_request", answers.length);
    clock.advance(waitMs);
    expect((await paused.result).stopReason).toBe("paused");
    const run = await stage.run(requestWith(answering(calls, answers, next, paused)));
    expect((await run.result).stopReason).toBe("paused");
    expect(run.resultsOf("pick").map(({ output }) => output)).toEqual(['{"other":true}', "first", "second"]);
    expect(run.of("interaction_request")).toMatchObject([{ payload: { input: { n: 1 } } }]);
  });

  it("don't allow a call that needs an approval, nor vice versa", async () => {
    const pick = `call pick ${JSON.stringify(given)}`;
    const paused = await stage.run(requestWith(asking(pick)));
    const answers = [{ tool: "pick", input: given, output: { approved: true } }];
    const run = await stage.run(requestWith(answering(pick, answers, send("call"), paused)));
    expect((await run.result).stopReason).toBe("paused");
    expect(platform.calls).toEqual([]);
  });
});

describe("an agent with a model", () => {
  it("gets a request to repeat the call, and then the answer", { timeout: 60_000 }, async () => {
    const agent = await startAgent("codex", (turn) => {
      if (turn.toolResults.length > 0 || turn.tools.length === 0) return undefined;
      return turn.lastUserText.includes("Make the same tool call again") ? call("pick", { n: 1 }) : undefined;
    });
    const request = { ...requestWith({ sessionId: "" }), ...agent.request };
    const first = agent.prompt({ tool: "pick", input: { n: 1 } });
    const paused = await stage.run({ ...request, ...asking(first) });
    expect((await paused.result).stopReason).toBe("paused");
    // Without a user's text next to the answer, and without the session's agent: from the transcript.
    const { messages } = answering(first, [{ tool: "pick", input: { n: 1 }, output: "crimson" }], "", paused);
    const run = await stage.run({ ...request, messages: messages.slice(0, -1) });
    expect(await run.result).toMatchObject({ ok: true, receipt: { session: { history: "replayed" } } });
    expect(run.resultsOf("pick")).toMatchObject([{ output: "crimson" }]);
    await agent.close();
  });
});
