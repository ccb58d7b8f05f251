import { once } from "node:events";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { describe, expect, it } from "vitest";
import { InnerApi } from "../../src/http/doors/inner-api.js";
import type { Exchange } from "../../src/http/server-context.js";

/** The API of a server that answers each request by writing to its exchange. */
function apiOf(write: (exchange: Exchange) => void | Promise<void>) {
  const api = new InnerApi(async (_request, exchange) => {
    await write(exchange);
    return RESPONSE_ALREADY_SENT;
  });
  return { api, fetch: api.fetchAs({ kind: "operator" }) };
}

const url = "http://ambit.test/runs?limit=2";

describe("the API within the process", () => {
  it("carries a request with a streamed body, and its response", async () => {
    const { fetch } = apiOf(async ({ incoming, outgoing }) => {
      const parts: string[] = [];
      for await (const part of incoming) parts.push(String(part));
      const { method, url: target, headers } = incoming;
      outgoing.setHeader("x-test", "1").writeHead(207, { "content-type": "application/json" });
      outgoing.end(JSON.stringify({ method, target, type: headers["content-type"], body: parts.join("") }));
    });
    const body = ReadableStream.from(["first ", "second"]).pipeThrough(new TextEncoderStream());
    const headers = { "content-type": "text/plain" };
    const response = await fetch(url, { method: "POST", headers, body, duplex: "half" });
    expect(response.status).toBe(207);
    expect(response.headers.get("x-test")).toBe("1");
    expect(await response.json()).toEqual({
      method: "POST",
      target: "/runs?limit=2",
      type: "text/plain",
      body: "first second",
    });
  });

  it("holds back what is written ahead of its reader", async () => {
    const part = Buffer.alloc(32_768);
    let written = 0;
    const { fetch } = apiOf(async ({ outgoing }) => {
      outgoing.writeHead(200);
      for (; written < 40; written += 1) if (!outgoing.write(part)) await once(outgoing, "drain");
      outgoing.end();
    });
    const { body } = await fetch(url);
    if (body === null) throw new TypeError("the response has no body");
    const reader = body.getReader();
    let bytes = 0;
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      if (bytes === 0) expect(written).toBeLessThan(10);
      bytes += read.value.length;
    }
    expect(bytes).toBe(40 * part.length);
  });

  it("says that its reader has left", async () => {
    const left = Promise.withResolvers<boolean>();
    const { fetch } = apiOf(({ outgoing }) => {
      outgoing.once("close", () => left.resolve(outgoing.writableFinished));
      outgoing.writeHead(200).write("begun");
    });
    const response = await fetch(url);
    await response.body?.cancel();
    expect(await left.promise).toBe(false);
  });

  it.each([
    ["the server", ({ outgoing }: Exchange) => void outgoing.destroy()],
    ["the API's end", (_exchange: Exchange, api: InnerApi) => api.close()],
  ])("errors a body that %s ends early", async (_who, end) => {
    let exchange: Exchange | undefined;
    const { api, fetch } = apiOf((begun) => {
      exchange = begun;
      begun.outgoing.writeHead(200).write("begun");
    });
    const response = await fetch(url);
    if (exchange === undefined) throw new TypeError("no request arrived");
    end(exchange, api);
    await expect(response.text()).rejects.toThrow("the response has ended early");
  });

  it("rejects where no response begins, and once its signal has aborted", async () => {
    const { fetch } = apiOf(({ outgoing }) => void outgoing.destroy());
    await expect(fetch(url)).rejects.toThrow("the response has ended early");
    await expect(fetch(url, { signal: AbortSignal.abort() })).rejects.toThrow("aborted");
    const asked = Promise.withResolvers<void>();
    const silent = apiOf(() => asked.resolve());
    const aborter = new AbortController();
    const answer = silent.fetch(url, { signal: aborter.signal });
    await asked.promise;
    aborter.abort();
    await expect(answer).rejects.toBe(aborter.signal.reason);
  });
});
