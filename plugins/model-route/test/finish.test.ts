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
/** Of a server that may never say it. */
const unnamed = {
  ...unfinished,
  message: expect.stringMatching(/before it was finished \(it has no finish_reason; .* withoutFinishReason /),
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
      expect(route.ends).toEqual(ends.map((end) => end && (api === "openai chat" ? unnamed : end)));
      expect(route.stops).toEqual(stops);
      // What was sent of it is paid for.
      expect(route.total().output).toBeGreaterThan(0);
      if (!marker.includes("cut")) expect(route.total()).toMatchObject({ input: 1_200, output: 50 });
    },
  );
});

/** What a route reports of an answer. */
async function endOf(
  use: Parameters<typeof useOf>[0],
  path: string,
  type: string,
  answer: string,
  withoutFinishReason?: (host: string) => readonly string[],
) {
  const origin = await serving((_request, response) => {
    response.writeHead(200, { "content-type": type }).end(answer);
  });
  const config =
    withoutFinishReason === undefined
      ? {}
      : { withoutFinishReason: withoutFinishReason(new URL(origin).host) };
  const route = routeTo(useOf({ ...use, endpoint: `${origin}${useOf(use).basePath}` }), config);
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
    { what: "chat: nothing", use: openai, path: chat, events: [], end: unnamed },
    { what: "chat: only [DONE]", use: openai, path: chat, events: ["[DONE]"], end: unnamed },
    {
      what: "chat: a text that looks like a finish",
      use: openai,
      path: chat,
      events: [{ choices: [{ delta: { content: '"finish_reason":"stop"' }, finish_reason: null }] }],
      end: unnamed,
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

  const piece = (finish: object) => ({ choices: [{ index: 0, delta: { content: "Hello" }, ...finish }] });
  it.each([
    { what: "has no finish_reason at all, and [DONE]", events: [piece({}), "[DONE]"], end: "whole" },
    { what: "has no finish_reason at all, and no [DONE]", events: [piece({}), piece({})], end: unnamed },
    {
      what: "has one that stays null, and [DONE]",
      events: [piece({ finish_reason: null }), "[DONE]"],
      end: unnamed,
    },
  ])("of Chat Completions that $what", async ({ events, end }) => {
    const [type, answer] = ["text/event-stream", stream(...events)] as const;
    expect(await endOf(openai, chat, type, answer)).toEqual(end);
    // Of a server that is listed, by its name or with its port.
    expect(await endOf(openai, chat, type, answer, (host) => [host])).toBe("whole");
    expect(await endOf(openai, chat, type, answer, () => ["127.0.0.1"])).toBe("whole");
    expect(await endOf(openai, chat, type, answer, () => ["127.0.0.1:1", "localhost"])).toEqual(end);
  });

  it("and is empty isn't finished, nor is one that failed, at a server that is listed", async () => {
    const listed = (...events: readonly unknown[]) =>
      endOf(openai, chat, "text/event-stream", stream(...events), (host) => [host]);
    expect(await listed("[DONE]")).toEqual(unnamed);
    const overloaded = [piece({}), { error: { message: "overloaded" } }, "[DONE]"];
    expect(await listed(...overloaded)).toEqual(unfinishedWith("overloaded"));
    expect(await endOf(openai, chat, "text/event-stream", stream(...overloaded))).toEqual(
      unfinishedWith("overloaded"),
    );
    const failed = await endOf(
      openai,
      responses,
      "text/event-stream",
      stream({ response: { status: "failed", error: { message: "no more" } } }),
      (host) => [host],
    );
    expect(failed).toEqual(unfinishedWith("no more"));
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
