import { type AgentEvent, NotFound, RequestInvalid, type RunResult, type StreamRecord } from "@ambit/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { asking, startAgent } from "../support/agents.js";
import { startClock } from "../support/clock.js";
import { type Platform, startPlatform } from "../support/platform.js";
import { Stage } from "../support/stage.js";
import { callbackTool, clientTool } from "../support/tools.js";

const token = "runner-token-1";
/** Of a question. */
const waitMs = 60_000;
let stage: Stage;
/** A server keeps the answers of the runs that it records: those of its own callers. */
let served: Stage;
let platform: Platform;
beforeAll(async () => {
  [stage, served, platform] = await Promise.all([Stage.open(), Stage.serve({ token }), startPlatform()]);
});
afterAll(async () => {
  await Promise.all([stage.close(), served.close()]);
  await platform[Symbol.asyncDispose]();
});
beforeEach(() => {
  platform.calls.length = 0;
});

function requestWith(prompt: string, more: object = {}): object {
  const customTools = [callbackTool("send", { permission: "ask" }), clientTool("pick")];
  const toolCallback = { endpoint: platform.endpoint };
  const interactions = { waitMs };
  const shared = { harness: "demo", sessionId: "live", customTools, toolCallback, interactions };
  return { ...shared, ...asking(prompt), ...more };
}

function answerOver(
  http: { runId: string; id: string },
  body: unknown,
  headers: Record<string, string> = {},
) {
  return fetch(`${served.url}/runs/${http.runId}/interactions/${http.id}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, ...headers },
    body: JSON.stringify(body),
  });
}

const post = (request: object) =>
  fetch(`${served.url}/run`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, accept: "application/x-ndjson" },
    body: JSON.stringify(request),
  });

const runIdOf = (response: Response) => response.headers.get("x-ambit-run-id") ?? "";

async function* recordsOf({ body }: Response): AsyncGenerator<StreamRecord, void, undefined> {
  let rest = "";
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    // A blank line says that the server is still there: 15 seconds passed without a record.
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
}

describe("POST /runs/:runId/interactions/:id", () => {
  it("accepts a valid answer once, with the token", async () => {
    const stream = await post(requestWith('call send {"to":"ann"}'));
    const events: AgentEvent[] = [];
    let result: RunResult | undefined;
    for await (const record of recordsOf(stream)) {
      if (record.kind === "result") result = record.result;
      else events.push(record.event);
      if (record.kind === "result" || record.event.type !== "interaction_request") continue;
      const at = { runId: runIdOf(stream), id: record.event.id };
      const refused = [
        [await answerOver(at, { approved: true }, { authorization: "Bearer wrong" }), 401, "unauthorized"],
        [await answerOver({ ...at, id: "11111111-2222" }, { approved: true }), 404, "not_found"],
        [await answerOver({ ...at, runId: "no-such-run" }, { approved: true }), 404, "not_found"],
        [await answerOver(at, { output: "yes" }), 400, "request_invalid"],
        [await answerOver(at, { approved: "yes" }), 400, "request_invalid"],
        [await answerOver(at, { approved: true, output: 1 }), 400, "request_invalid"],
        [await answerOver(at, []), 400, "request_invalid"],
      ] as const;
      for (const [response, status, code] of refused) {
        expect(response.status).toBe(status);
        expect(await response.json()).toMatchObject({ ok: false, failure: { code } });
      }
      expect(platform.calls).toEqual([]);
      expect((await answerOver(at, { approved: true })).status).toBe(200);
      expect((await answerOver(at, { approved: true })).status).toBe(404);
    }
    expect(result).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(platform.calls).toEqual([{ name: "ref__send", arguments: { to: "ann" } }]);
    const answers = events.flatMap((event) => (event.type === "interaction_response" ? [event] : []));
    expect(answers).toMatchObject([{ payload: { approved: true } }]);
    const at = { runId: runIdOf(stream), id: answers[0]?.id ?? "" };
    expect((await answerOver(at, { approved: true })).status).toBe(404);
    expect(platform.calls).toHaveLength(1);
  });

  it("answers a question of a stream that is still open", async () => {
    const stream = await post(requestWith("call pick"));
    const records: StreamRecord[] = [];
    for await (const record of recordsOf(stream)) {
      records.push(record);
      if (record.kind !== "event" || record.event.type !== "interaction_request") continue;
      await answerOver({ runId: runIdOf(stream), id: record.event.id }, { output: { colour: "teal" } });
    }
    const text = JSON.stringify(records);
    expect(text).toContain('"type":"interaction_response"');
    expect(text).toContain('"output":"{\\"colour\\":\\"teal\\"}"');
    expect(text).toContain('"stopReason":"end_turn"');
  });
});

describe("several parked calls", () => {
  const four = [
    'call pick {"n":1}',
    'call pick {"n":2}',
    'call send {"to":"ann"}',
    'call! send {"to":"bob"}',
  ];

  it.each([
    ["as they were asked", [0, 1, 2, 3]],
    ["the last first", [3, 2, 1, 0]],
  ])("are answered in any order: %s", async (_what, order) => {
    const run = await stage.begin(requestWith(four.map((line) => `& ${line}`).join("\n")));
    const questions = await run.until("interaction_request", 4);
    for (const index of order) {
      const { id, kind, payload } = questions[index] ?? { id: "", kind: "client_tool", payload: {} };
      const input = JSON.stringify(payload);
      const approved = input.includes("ann");
      run.run.answer(id, kind === "user_approval" ? { approved } : { output: `to ${input.match(/"n":\d/)}` });
    }
    expect(await run.result).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(platform.calls).toEqual([{ name: "ref__send", arguments: { to: "ann" } }]);
    const outputs = run.resultsOf("pick").map(({ output }) => output);
    expect(outputs.sort()).toEqual(['to "n":1', 'to "n":2']);
    expect(run.resultsOf("send").filter(({ denied }) => denied === true)).toHaveLength(1);
  });

  it("pause together if one isn't answered in time: earlier answers count, a late one doesn't", async () => {
    const lines = ["& call send {}", '& call pick {"n":1}'];
    using clock = startClock();
    const run = await stage.begin(requestWith(lines.join("\n")));
    const questions = await run.until("interaction_request", 2);
    const idOf = (wanted: string) => questions.find(({ kind }) => kind === wanted)?.id ?? "";
    run.run.answer(idOf("client_tool"), { output: "in time" });
    clock.advance(waitMs);
    expect((await run.result).stopReason).toBe("paused");
    expect(run.resultsOf("pick").map(({ output }) => output)).toEqual(["in time"]);
    expect(run.resultsOf("send")).toEqual([]);
    expect(() => run.run.answer(idOf("user_approval"), { approved: true })).toThrow(NotFound);
    expect(() => stage.runner.answer(run.id, idOf("user_approval"), { approved: true })).toThrow(NotFound);
    expect(platform.calls).toEqual([]);
  });

  it("are separate: an answer for another run, or of the wrong kind, leaves the question open", async () => {
    const [one, other] = await Promise.all([
      stage.begin(requestWith('call send {"to":"ann"}', { sessionId: "live-1" })),
      stage.begin(requestWith('call send {"to":"ann"}', { sessionId: "live-2" })),
    ]);
    const [[first], [second]] = await Promise.all([
      one.until("interaction_request"),
      other.until("interaction_request"),
    ]);
    expect(() => one.run.answer(second?.id ?? "", { approved: true })).toThrow(NotFound);
    expect(() => one.run.answer(first?.id ?? "", { output: "x" })).toThrow(RequestInvalid);
    one.run.answer(first?.id ?? "", { approved: false });
    other.run.answer(second?.id ?? "", { approved: true });
    await Promise.all([one.result, other.result]);
    expect(platform.calls).toHaveLength(1);
    expect(one.resultsOf("send")).toMatchObject([{ denied: true }]);
  });
});

describe("a cancelled run", () => {
  it("executes none of the calls that wait for an answer", async () => {
    const run = await stage.begin(requestWith("call send {}"));
    const [question] = await run.until("interaction_request");
    stage.runner.cancel(run.id);
    expect((await run.result).stopReason).toBe("cancelled");
    expect(() => run.run.answer(question?.id ?? "", { approved: true })).toThrow(NotFound);
    expect(platform.calls).toEqual([]);
  });
});

describe.each(["gemini", "codex"] as const)("%s", (id) => {
  it("waits for live answers to two calls at once", { timeout: 60_000 }, async () => {
    const agent = await startAgent(id);
    const prompt = agent.together({ tool: "send", input: { to: "ann" } }, { tool: "pick", input: { n: 1 } });
    const run = await stage.begin({ ...requestWith(prompt), sessionId: "", ...agent.request });
    // Some agents make their calls in sequence, although their model made them in parallel.
    for (let count = 1; count <= 2; count += 1) {
      const { id: asked, kind } = (await run.until("interaction_request", count))[count - 1] ?? { id: "" };
      run.run.answer(asked, kind === "user_approval" ? { approved: true } : { output: "crimson" });
    }
    expect(await run.result).toMatchObject({ ok: true });
    expect(platform.calls).toEqual([{ name: "ref__send", arguments: { to: "ann" } }]);
    expect(run.resultsOf("pick")).toMatchObject([{ output: "crimson" }]);
    await agent.close();
  });
});
