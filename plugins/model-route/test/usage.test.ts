import { startModelServer } from "@ambit/model-server";
import { describe, expect, it } from "vitest";
import { askingForUsage, HeldBytes, readBody } from "../src/request/read-body.js";
import { routeTo, serving, useOf } from "./support/stage.js";

const prices = { "m-*": { input: 10, output: 100, cached: 1 } };
const openai = {
  protocol: "openai",
  basePath: "/v1",
  credentials: { OPENAI_API_KEY: "sk-0123456789" },
} as const;

const said = [{ role: "user", content: "hi" }];
/** The usage in each response of the scripted model. */
const counted = { input: 1_200, output: 50 };

describe("usage, from an independent server's streams and documents", () => {
  it.each([
    { api: "anthropic", use: {}, path: "/v1/messages", body: { max_tokens: 99, messages: said } },
    { api: "openai responses", use: openai, path: "/v1/responses", body: { input: said } },
    { api: "openai chat", use: openai, path: "/v1/chat/completions", body: { messages: said } },
    {
      api: "gemini",
      use: { protocol: "gemini", credentials: { GEMINI_API_KEY: "g-0123456789" } } as const,
      path: "/v1beta/models/m-1:streamGenerateContent?alt=sse",
      body: { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
    },
  ])("$api", async ({ api, use, path, body: asks }) => {
    await using model = await startModelServer({
      expectedKey: Object.values({ ...useOf(use).credentials })[0] ?? "",
    });
    const endpoint = `${model.url}${useOf(use).basePath}`;
    for (const stream of [true, false]) {
      const { send, total, ends } = routeTo(useOf({ ...use, endpoint }), { prices });
      const body = api === "gemini" ? asks : { model: "m-1", stream, ...asks };
      const asked = stream ? path : path.replace("streamGenerateContent?alt=sse", "generateContent");
      const response = await send(JSON.stringify(body), asked);
      expect(response.status).toBe(200);
      expect(await response.text()).toContain("Hello");
      expect(ends).toEqual([undefined]);
      expect(total()).toMatchObject(counted);
      expect(total().cost).toBeCloseTo((1_200 * 10 + 50 * 100) / 1_000_000);
    }
  });
});

describe("the parts of the usage", () => {
  it.each([
    {
      api: "anthropic",
      use: {},
      path: "/v1/messages",
      body: { model: "m-1", max_tokens: 9, messages: said },
      answer: { usage: { input_tokens: 10, cache_creation_input_tokens: 30, output_tokens: 5 } },
      total: { input: 40, cacheWritten: 30, output: 5, reasoning: 0 },
    },
    {
      api: "openai responses",
      use: openai,
      path: "/v1/responses",
      body: { model: "m-1", input: said },
      answer: {
        usage: { input_tokens: 10, output_tokens: 9, output_tokens_details: { reasoning_tokens: 6 } },
      },
      total: { input: 10, output: 9, reasoning: 6 },
    },
    {
      api: "openai chat",
      use: openai,
      path: "/v1/chat/completions",
      body: { model: "m-1", messages: said },
      answer: {
        usage: {
          prompt_tokens: 10,
          completion_tokens: 9,
          completion_tokens_details: { reasoning_tokens: 6 },
        },
      },
      total: { input: 10, output: 9, reasoning: 6 },
    },
    {
      api: "gemini",
      use: { protocol: "gemini", credentials: { GEMINI_API_KEY: "g-0123456789" } } as const,
      path: "/v1beta/models/m-1:generateContent",
      body: { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
      answer: { usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 3, thoughtsTokenCount: 6 } },
      total: { input: 10, output: 9, reasoning: 6 },
    },
  ])("$api: reasoning, and what was written to the cache", async ({ use, path, body, answer, total }) => {
    const origin = await serving((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(answer));
    });
    const endpoint = `${origin}${useOf(use).basePath}`;
    const route = routeTo(useOf({ ...use, endpoint }));
    await (await route.send(JSON.stringify(body), path)).text();
    expect(route.total()).toMatchObject(total);
  });
});

describe("usage that isn't reported", () => {
  const events = 40;
  const streaming = (response: import("node:http").ServerResponse) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let count = 0; count < events; count += 1) response.write('data: {"delta":"x"}\n\n');
  };

  it("is estimated if the agent leaves before the provider reports it", async () => {
    const origin = await serving((_request, response) => streaming(response));
    const { send, total, ends } = routeTo(useOf({ ...openai, endpoint: `${origin}/v1` }));
    const body = JSON.stringify({ model: "m-1", input: "x".repeat(4_000) });
    const response = await send(body, "/v1/responses");
    const reader = response.body?.getReader();
    for (let read = 0; read < events * 21; )
      read += (await reader?.read())?.value?.length ?? Number.POSITIVE_INFINITY;
    await reader?.cancel();
    expect(ends).toEqual([undefined]);
    expect(total()).toMatchObject({ input: Math.ceil(body.length / 4), output: events });
  });

  it("is estimated when the agent leaves before the first byte: a budget would never see such requests", async () => {
    let arrived = () => {};
    const isHere = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const origin = await serving(() => arrived());
    const { send, total, ends } = routeTo(useOf({ endpoint: origin }), { prices });
    const body = JSON.stringify({ model: "m-1", system: "x".repeat(4_000) });
    const leaves = new AbortController();
    const answer = send(body, "/v1/messages", { signal: leaves.signal });
    await isHere;
    leaves.abort();
    expect((await answer).status).toBe(499);
    expect(ends).toEqual([undefined]);
    expect(total()).toMatchObject({ input: Math.ceil(body.length / 4), output: 0 });
    expect(total().cost).toBeGreaterThan(0);
  });

  it("counts what has passed of a stream that is left, however few events bring it", async () => {
    const delta = `data: ${JSON.stringify({ type: "response.output_text.delta", delta: "x".repeat(40_000) })}\n\n`;
    const origin = await serving((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (let at = 0; at < 5; at += 1) response.write(delta);
    });
    const left = async (more: object) => {
      const { send, total } = routeTo(useOf({ ...openai, endpoint: `${origin}/v1` }));
      const response = await send(JSON.stringify({ model: "m-1", ...more }), "/v1/responses");
      const reader = response.body?.getReader();
      await reader?.read();
      await reader?.cancel();
      return total().output;
    };
    // Without reading on, only the first piece would count.
    expect(await left({})).toBeGreaterThan(49_000);
    expect(await left({ max_output_tokens: 20_000 })).toBe(20_000);
  });

  it("includes the last event of a stream that is left right before it", async () => {
    const usage = { input_tokens: 10, output_tokens: 3_000 };
    const origin = await serving((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: {"delta":"${"x".repeat(100_000)}"}\n\n`);
      response.end(`data: ${JSON.stringify({ response: { status: "completed", usage } })}\n\n`);
    });
    const { send, total } = routeTo(useOf({ ...openai, endpoint: `${origin}/v1` }));
    const response = await send(JSON.stringify({ model: "m-1" }), "/v1/responses");
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(total()).toMatchObject({ input: 10, output: 3_000 });
  });

  it("can't be hidden in the background, where the answer comes without it", async () => {
    const seen: string[] = [];
    const origin = await serving((request, response) => {
      seen.push(request.url ?? "");
      response.writeHead(200, { "content-type": "application/json" }).end('{"status":"queued","usage":null}');
    });
    const { send } = routeTo(useOf({ ...openai, endpoint: `${origin}/v1` }));
    const asking = (background: unknown) =>
      send(JSON.stringify({ model: "m-1", background }), "/v1/responses");
    for (const background of [true, "yes", 1]) {
      const answer = await asking(background);
      expect(answer.status).toBe(400);
      expect(await answer.text()).toContain("in the background");
    }
    expect(seen).toEqual([]);
    for (const background of [false, null]) expect((await asking(background)).status).toBe(200);
  });

  it("is estimated where the provider tells none, and costs what the estimate costs", async () => {
    const origin = await serving((_request, response) => {
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ text: "x".repeat(400) }));
    });
    const { send, total } = routeTo(useOf({ endpoint: origin }), { prices });
    await (await send()).text();
    expect(total().output).toBeGreaterThan(100);
    expect(total().cost).toBeGreaterThan(0);
  });

  it("text of the model that looks like usage isn't counted", async () => {
    const faked = {
      content: [{ usage: { input_tokens: 0, output_tokens: 0 } }],
      text: '"usage":{"output_tokens":1}',
    };
    const origin = await serving((_request, response) => {
      const body = { ...faked, usage: { input_tokens: 30, output_tokens: 20 } };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
    const { send, total } = routeTo(useOf({ endpoint: origin }));
    await (await send()).text();
    expect(total()).toMatchObject({ input: 30, output: 20 });
  });

  it("an interrupted response is a retryable failure", async () => {
    const origin = await serving((_request, response) => {
      streaming(response);
      setTimeout(() => response.destroy(), 20);
    });
    const { send, ends } = routeTo(useOf({ endpoint: origin }));
    await expect((await send()).text()).rejects.toThrow();
    expect(ends).toMatchObject([{ retryable: true, message: expect.stringContaining("truncated") }]);
  });
});

describe("a streamed Chat Completions request", () => {
  const asked = async (text: string, pieceSize = text.length) => {
    const pieces = Buffer.from(text);
    const stream = new ReadableStream({
      start: (controller) => {
        for (let at = 0; at < pieces.length; at += pieceSize)
          controller.enqueue(pieces.subarray(at, at + pieceSize));
        controller.close();
      },
    });
    const request = new Request("http://127.0.0.1", {
      method: "POST",
      body: stream,
      duplex: "half",
    } as RequestInit);
    const limits = { requestBytes: 10_000, requestValues: 100, receiveMs: 1_000 };
    const body = await readBody(request, limits, new HeldBytes(10_000).share(), new AbortController().signal);
    return body === undefined ? undefined : askingForUsage(body);
  };

  it.each([1, 3, 1_000])("requests its usage, in pieces of %i bytes", async (pieceSize) => {
    const asks = { stream_options: { include_usage: true } };
    expect(await asked('{"model":"m","stream":true,"x":"é"}', pieceSize)).toEqual({
      model: "m",
      stream: true,
      x: "é",
      ...asks,
    });
    expect(await asked('{"stream_options" : {"include_usage":false} , "stream":true}', pieceSize)).toEqual({
      stream: true,
      ...asks,
    });
    expect(await asked('{"stream":true,"stream_options":null}', pieceSize)).toEqual({
      stream: true,
      ...asks,
    });
  });

  it("is unchanged if it isn't streamed, or requests its usage already", async () => {
    expect(await asked('{"stream":false}')).toEqual({ stream: false });
    const asking = { stream: true, stream_options: { include_usage: true, extra: 1 } };
    expect(await asked(JSON.stringify(asking))).toEqual(asking);
  });
});
