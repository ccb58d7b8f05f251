import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ApiName, type ModelServer, startModelServer } from "../src/index.js";
import { COMPLETIONS, PROMPT, TEXT } from "./completions.js";
import { API_CASES, eventsOf, post } from "./requests.js";

/** The text and JSON pieces of an API's stream, in order, and the other events. */
const STREAMS: Readonly<Record<ApiName, { pieces: RegExp; events: readonly string[] }>> = {
  anthropic: {
    pieces: /"(?:thinking|text|partial_json)":"((?:[^"\\]|\\.)*)"/g,
    events: [
      "message_start",
      ...["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
      ...["content_block_start", ...Array(3).fill("content_block_delta"), "content_block_stop"],
      ...["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
      ...["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
      ...["message_delta", "message_stop"],
    ],
  },
  "openai-chat": { pieces: /"(?:reasoning_content|content|arguments)":"((?:[^"\\]|\\.)*)"/g, events: [] },
  "openai-responses": {
    pieces: /"delta":"((?:[^"\\]|\\.)*)"/g,
    events: [
      ...["response.created", "response.in_progress"],
      ...["response.output_item.added", "response.reasoning_summary_part.added"],
      ...["response.reasoning_summary_text.delta", "response.reasoning_summary_text.done"],
      ...["response.reasoning_summary_part.done", "response.output_item.done"],
      ...["response.output_item.added", "response.content_part.added"],
      ...Array(3).fill("response.output_text.delta"),
      ...["response.output_text.done", "response.content_part.done", "response.output_item.done"],
      ...["response.output_item.added", ...Array(2).fill("response.function_call_arguments.delta")],
      ...["response.function_call_arguments.done", "response.output_item.done"],
      ...["response.output_item.added", ...Array(2).fill("response.function_call_arguments.delta")],
      ...["response.function_call_arguments.done", "response.output_item.done", "response.completed"],
    ],
  },
  gemini: { pieces: /"text":"((?:[^"\\]|\\.)*)"/g, events: [] },
};

describe.each(API_CASES)("$api", ({ api, path, body }) => {
  let server: ModelServer;
  beforeAll(async () => {
    server = await startModelServer();
  });
  afterAll(() => server.close());

  const ask = async (prompt: string, streamed: boolean, results?: readonly string[]) =>
    (await post(server.url + path(streamed), body(prompt, streamed, results))).text();

  it("responds in one body", async () => {
    expect(JSON.parse(await ask(PROMPT, false))).toEqual(COMPLETIONS[api]);
  });

  it("streams the same response in pieces", async () => {
    const stream = await ask(PROMPT, true);
    const { pieces, events } = STREAMS[api];
    const carried = joined(stream, pieces);
    expect(carried.startsWith(`hm${TEXT}`)).toBe(true);
    if (api !== "gemini") expect(carried).toMatch(/\{"a":1\}\{"(command|cmd)":"ls"\}$/);
    expect(eventsOf(stream).flatMap(({ event }) => event ?? [])).toEqual(events);
  });

  it("ends with the last result", async () => {
    expect(await ask(PROMPT, false, ["3", "file.txt"])).toContain('"FINAL: file.txt"');
    expect(server.requests.at(-1)).toMatchObject({
      api,
      operation: "generate",
      model: "the-model",
      streamed: false,
      lastUserText: PROMPT,
      toolNames: ["mcp__ambit__add", expect.stringMatching(/bash|shell|exec/i)],
      toolResults: [
        { callId: "id-0", text: "3" },
        { callId: "id-1", text: "file.txt" },
      ],
    });
  });

  it.each([true, false])(
    "says in a text which tools it was offered instead (streamed: %s)",
    async (streamed) => {
      const answer = await ask("[[call nothing_like_it]]", streamed);
      const text = streamed ? joined(answer, STREAMS[api].pieces) : answer;
      expect(text).toContain("NO TOOL nothing_like_it; offered: mcp__ambit__add, ");
      expect(server.requests.at(-1)?.streamed).toBe(streamed);
    },
  );

  it("refuses a body that the API would refuse, and names the field", async () => {
    const response = await post(server.url + path(false), { model: "the-model", max_tokens: 5 });
    expect(response.status).toBe(400);
    expect(await response.text()).toMatch(/at (messages|input|contents)/);
  });
});

describe("a search for tools that aren't offered yet (Responses)", () => {
  const search = '[[call tool_search {"query":"add"}]] [[call add {"a":1}]]';
  const withInput = (...more: object[]) => ({
    model: "the-model",
    tools: [{ type: "tool_search", execution: "client", parameters: {} }],
    input: [{ role: "user", content: search }, ...more],
  });
  const found = {
    type: "tool_search_output",
    call_id: "s",
    status: "completed",
    execution: "client",
    tools: [{ type: "namespace", name: "mcp__ambit", tools: [{ type: "function", name: "add" }] }],
  };

  it("has a call of its own kind, and the found tools can be called", async () => {
    await using server = await startModelServer();
    const ask = async (body: object) => (await post(`${server.url}/v1/responses`, body)).json();
    expect(await ask(withInput())).toMatchObject({
      output: [{ type: "tool_search_call", execution: "client", arguments: { query: "add" } }],
    });
    expect(await ask(withInput(found))).toMatchObject({
      output: [{ type: "function_call", name: "add", namespace: "mcp__ambit", arguments: '{"a":1}' }],
    });
    expect(server.requests.map(({ toolNames }) => toolNames)).toEqual([
      ["tool_search"],
      ["tool_search", "mcp__ambit__add"],
    ]);
  });

  it("allows no call of a tool that it didn't find", async () => {
    await using server = await startModelServer();
    const answer = await post(`${server.url}/v1/responses`, withInput({ ...found, tools: [] }));
    expect(await answer.text()).toContain("NO TOOL add; offered: tool_search");
  });
});

describe("the ends of streams", () => {
  it("Anthropic: the stop reason and the usage come with message_delta", async () => {
    const events = await streamOf("anthropic", {});
    expect(events.at(-2)?.data).toEqual({
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: 50 },
    });
  });

  it("chat completions: usage on request, then [DONE]", async () => {
    const without = await streamOf("openai-chat", {});
    expect(JSON.stringify(without)).not.toContain("prompt_tokens");
    const events = await streamOf("openai-chat", { stream_options: { include_usage: true } });
    expect(events.at(-3)?.data).toMatchObject({ choices: [{ delta: {}, finish_reason: "stop" }] });
    expect(events.at(-2)?.data).toMatchObject({ choices: [], usage: { total_tokens: 1250 } });
    expect(events.at(-1)?.data).toBe("[DONE]");
  });

  it("responses: the last event has the whole response, and the sequence numbers have no gap", async () => {
    const events = await streamOf("openai-responses", {});
    expect(events.at(-1)?.data).toMatchObject({
      response: {
        status: "completed",
        output: [{ content: [{ text: "hi" }] }],
        usage: { total_tokens: 1250 },
      },
    });
    expect(events.map(({ data }) => data)).toMatchObject(
      events.map((_, sequence_number) => ({ sequence_number })),
    );
  });

  it("Gemini: the last chunk has the finish reason", async () => {
    const events = await streamOf("gemini", {});
    expect(events.at(-1)?.data).toMatchObject({ candidates: [{ finishReason: "STOP" }] });
  });

  async function streamOf(api: ApiName, extra: object) {
    await using server = await startModelServer();
    const { path, body } = API_CASES.find((apiCase) => apiCase.api === api) ?? failCase(api);
    const response = await post(server.url + path(true), Object.assign({}, body("[[say hi]]", true), extra));
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    return eventsOf(await response.text());
  }
});

function joined(stream: string, pieces: RegExp): string {
  return [...stream.matchAll(pieces)].map(([, piece]) => JSON.parse(`"${piece}"`)).join("");
}

function failCase(api: ApiName): never {
  throw new Error(`No case for ${api}`);
}
