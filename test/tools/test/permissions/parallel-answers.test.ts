import type { Message } from "@ambit/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startAgent, type TestAgent } from "../support/agents.js";
import type { LiveRun } from "../support/live-run.js";
import { type Platform, startPlatform } from "../support/platform.js";
import { Stage } from "../support/stage.js";
import { callbackTool, clientTool } from "../support/tools.js";

let stage: Stage;
let platform: Platform;
let agents: Readonly<Record<"demo" | "gemini", TestAgent>>;
const input = { for: "ann" };
const calls = ["book", "seat", "meal"].map((tool) => ({ tool, input }));
beforeAll(async () => {
  // A model that makes the same calls whenever it is told that its user has answered, until it has all their results.
  const [demo, gemini] = await Promise.all([
    startAgent("demo"),
    startAgent("gemini", ({ lastUserText, toolResults }) =>
      lastUserText.includes("Make the same tool call again") && toolResults.length === 0
        ? { kind: "message", calls }
        : undefined,
    ),
  ]);
  agents = { demo, gemini };
  [stage, platform] = await Promise.all([Stage.open(), startPlatform(() => "done")]);
}, 60_000);
afterAll(async () => {
  await Promise.all([stage.close(), ...Object.values(agents).map((agent) => agent.close())]);
  await platform[Symbol.asyncDispose]();
});
beforeEach(() => {
  platform.calls.length = 0;
});

type Block = Extract<Message["content"], readonly unknown[]>[number];

/** The next request's messages: everything that the runs reported, and an answer to each question. */
class Conversation {
  readonly messages: Message[];

  constructor(
    readonly request: object,
    readonly prompt: string,
    /** Whether the script has to be sent again, since the agent has no model. */
    readonly isScripted: boolean,
  ) {
    this.messages = [{ role: "user", content: prompt }];
  }

  async turn(answer: (tool: unknown) => unknown): Promise<LiveRun> {
    const run = await stage.run({ ...this.request, messages: this.messages });
    const calls = run
      .of("tool_call")
      .map(
        ({ id, name = "", input }): Block => ({ type: "tool_call", toolCallId: id, toolName: name, input }),
      );
    const results = run
      .of("tool_result")
      .map(({ id, output }): Block => ({ type: "tool_result", toolCallId: id, output }));
    const answers = run.of("interaction_request").map(
      ({ id, payload }): Block => ({
        type: "tool_result",
        toolCallId: id,
        output: answer(payload?.toolName),
      }),
    );
    // The script stands next to the answers: it is no new word of the user.
    const script: Block[] = this.isScripted ? [{ type: "text", text: this.prompt }] : [];
    this.messages.push(
      { role: "assistant", content: calls },
      { role: "user", content: [...results, ...answers, ...script] },
    );
    return run;
  }
}

describe.each(["demo", "gemini"] as const)("three parallel calls that each need an approval, by %s", (id) => {
  it("are each made once, as soon as every question is answered", { timeout: 120_000 }, async () => {
    const agent = agents[id];
    const chat = new Conversation(
      {
        ...agent.request,
        sessionId: `parallel-${id}`,
        customTools: calls.map(({ tool }) => callbackTool(tool, { permission: "ask" })),
        toolCallback: { endpoint: platform.endpoint },
      },
      agent.together(...calls),
      id === "demo",
    );
    let last: LiveRun | undefined;
    for (let turn = 1; turn <= 5; turn += 1) {
      last = await chat.turn(() => ({ approved: true }));
      if ((await last.result).stopReason !== "paused") break;
    }
    expect(await last?.result).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(platform.calls.map(({ name }) => name).toSorted()).toEqual([
      "ref__book",
      "ref__meal",
      "ref__seat",
    ]);
    for (const { tool } of calls) expect(last?.resultsOf(tool)).toMatchObject([{ output: '"done"' }]);
  });
});

it("an approval beside a client tool: neither is lost, in whichever order they are answered", async () => {
  const request = {
    ...agents.demo.request,
    sessionId: "beside",
    customTools: [callbackTool("book", { permission: "ask" }), clientTool("pick")],
    toolCallback: { endpoint: platform.endpoint },
  };
  const prompt = agents.demo.together({ tool: "book", input }, { tool: "pick", input });
  const chat = new Conversation(request, prompt, true);
  let last: LiveRun | undefined;
  for (const [position, answered] of ["pick", "book"].entries()) {
    const run = await chat.turn((tool) =>
      tool !== answered ? "DEFERRED_NOT_EXECUTED: later" : tool === "pick" ? "window" : { approved: true },
    );
    expect([position, (await run.result).stopReason]).toEqual([position, "paused"]);
    last = run;
  }
  last = await chat.turn(() => undefined);
  expect((await last.result).stopReason).toBe("end_turn");
  expect(platform.calls).toHaveLength(1);
  expect(last.resultsOf("book")).toMatchObject([{ output: '"done"' }]);
  expect(last.resultsOf("pick")).toMatchObject([{ output: "window" }]);
});
