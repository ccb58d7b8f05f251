import { startModelServer } from "@ambit/model-server";
import { describe, expect, it } from "vitest";
import { routeTo, serving, useOf } from "./support/stage.js";

const openai = {
  protocol: "openai",
  basePath: "/v1",
  credentials: { OPENAI_API_KEY: "sk-0123456789" },
} as const;
const gemini = { protocol: "gemini", credentials: { GEMINI_API_KEY: "g-0123456789" } } as const;
const said = (text: string) => [{ role: "user", content: text }];
const tool = { name: "add", description: "", parameters: {} };

/** The four APIs, with a tool that the model may call. */
const apis = [
  {
    api: "anthropic",
    use: {},
    path: "/v1/messages",
    body: (text: string) => ({
      max_tokens: 99,
      messages: said(text),
      tools: [{ name: "add", input_schema: {} }],
    }),
  },
  {
    api: "openai responses",
    use: openai,
    path: "/v1/responses",
    body: (text: string) => ({ input: said(text), tools: [{ type: "function", ...tool }] }),
  },
  {
    api: "openai chat",
    use: openai,
    path: "/v1/chat/completions",
    body: (text: string) => ({ messages: said(text), tools: [{ type: "function", function: tool }] }),
  },
  {
    api: "gemini",
    use: gemini,
    path: "/v1beta/models/m-1:streamGenerateContent?alt=sse",
    body: (text: string) => ({
      contents: [{ role: "user", parts: [{ text }] }],
      tools: [{ functionDeclarations: [tool] }],
    }),
  },
] as const;

const unfinished = {
  retryable: true,
  isPartial: true,
  message: "The model's answer ended before it was finished",
};
const markers = [
  { marker: "[[say ok]]", ends: [undefined], stops: [undefined] },
  { marker: '[[call add {"a":1}]]', ends: [undefined], stops: [undefined] },
  { marker: "[[say some text]] [[cut]]", ends: [unfinished], stops: [undefined] },
  { marker: '[[say some text]] [[cut call add {"a":1}]]', ends: [unfinished], stops: [undefined] },
  { marker: "[[say some text]] [[limit]]", ends: [undefined], stops: ["max_tokens"] },
  { marker: '[[limit call add {"a":1}]]', ends: [undefined], stops: ["max_tokens"] },
] as const;

describe.each(apis)("an answer of $api", ({ api, use, path, body }) => {
  it.each([true, false].flatMap((streamed) => markers.map((one) => ({ streamed, ...one }))))(
    "$marker, streamed: $streamed",
    async ({ streamed, marker, ends, stops }) => {
      await using model = await startModelServer();
      const route = routeTo(useOf({ ...use, endpoint: `${model.url}${useOf(use).basePath}` }));
      const asks = api === "gemini" ? body(marker) : { model: "m-1", stream: streamed, ...body(marker) };
      const asked = streamed ? path : path.replace("streamGenerateContent?alt=sse", "generateContent");
      const response = await route.send(JSON.stringify(asks), asked);
      expect(response.status).toBe(200);
      await response.text();
      expect(route.ends).toEqual(ends);
      expect(route.stops).toEqual(stops);
      // What was sent of it is paid for.
      expect(route.total().output).toBeGreaterThan(0);
      if (!marker.includes("cut")) expect(route.total()).toMatchObject({ input: 1_200, output: 50 });
    },
  );
});

/** What a route reports of an answer. */
async function endOf(use: Parameters<typeof useOf>[0], path: string, type: string, answer: string) {
  const origin = await serving((_request, response) => {
    response.writeHead(200, { "content-type": type }).end(answer);
  });
  const route = routeTo(useOf({ ...use, endpoint: `${origin}${useOf(use).basePath}` }));
  await (await route.send(JSON.stringify({ model: "m-1" }), path)).text();
  expect(route.ends).toHaveLength(1);
  return route.ends[0] ?? route.stops[0] ?? "whole";
}
const stream = (...events: readonly unknown[]) =>
  events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join("");

describe("a stream that ends properly", () => {
  const [chat, responses, messages] = ["/v1/chat/completions", "/v1/responses", "/v1/messages"] as const;
  const generate = "/v1beta/models/m-1:streamGenerateContent?alt=sse";
  const unfinishedWith = (words: string) => ({ ...unfinished, message: `${unfinished.message}: ${words}` });
  it.each([
    { what: "chat: nothing", use: openai, path: chat, events: [], end: unfinished },
    { what: "chat: only [DONE]", use: openai, path: chat, events: ["[DONE]"], end: unfinished },
    {
      what: "chat: a text that looks like a finish",
      use: openai,
      path: chat,
      events: [{ choices: [{ delta: { content: '"finish_reason":"stop"' }, finish_reason: null }] }],
      end: unfinished,
    },
    {
      what: "chat: an error in the middle",
      use: openai,
      path: chat,
      events: [{ choices: [{ delta: {}, finish_reason: null }] }, { error: { message: "overloaded" } }],
      end: unfinishedWith("overloaded"),
    },
    {
      what: "chat: a filter",
      use: openai,
      path: chat,
      events: [{ choices: [{ finish_reason: "content_filter" }] }],
      end: "whole",
    },
    {
      what: "responses: failed",
      use: openai,
      path: responses,
      events: [{ response: { status: "failed", error: { message: "no more" } } }],
      end: unfinishedWith("no more"),
    },
    {
      what: "responses: filtered",
      use: openai,
      path: responses,
      events: [{ response: { incomplete_details: { reason: "content_filter" }, status: "incomplete" } }],
      end: "whole",
    },
    {
      what: "anthropic: its context is full",
      use: {},
      path: messages,
      events: [
        { message: { stop_reason: null, usage: { input_tokens: 1 } } },
        { delta: { stop_reason: "model_context_window_exceeded" }, usage: { output_tokens: 5 } },
      ],
      end: "max_tokens",
    },
    {
      what: "anthropic: overloaded in the middle",
      use: {},
      path: messages,
      events: [{ message: { stop_reason: null } }, { type: "error", error: { message: "Overloaded" } }],
      end: unfinishedWith("Overloaded"),
    },
    {
      what: "gemini: a refused prompt",
      use: gemini,
      path: generate,
      events: [{ promptFeedback: { blockReason: "SAFETY" } }],
      end: "whole",
    },
  ])("$what", async ({ use, path, events, end }) => {
    expect(await endOf(use, path, "text/event-stream", stream(...events))).toEqual(end);
  });

  it("isn't judged in a form that isn't known", async () => {
    expect(await endOf({}, messages, "application/json", '{"usage":{"input_tokens":1}}')).toBe("whole");
    const bedrock = {
      protocol: "bedrock",
      region: "us-east-1",
      credentials: { AWS_BEARER_TOKEN_BEDROCK: "b-0123456789" },
    } as const;
    const invoke = (answer: object) =>
      endOf(bedrock, "/model/m-1/invoke", "application/json", JSON.stringify(answer));
    expect(await invoke({ generation: "hello" })).toBe("whole");
    expect(await invoke({ role: "assistant", stop_reason: "max_tokens" })).toBe("max_tokens");
    expect(await invoke({ role: "assistant", stop_reason: null })).toEqual(unfinished);
    expect(await invoke({ output: {}, stopReason: "max_tokens" })).toBe("max_tokens");
  });
});
