import { once } from "node:events";
import { createServer, get } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jsonPieces, sendLargeJson } from "../../src/http/response/send.js";
import { saying } from "../support/scripted-agent.js";
import { asking, serveScript } from "../support/server.js";

const million = "x".repeat(1_000_000);

describe("the JSON of a large value, in pieces", () => {
  it.each([
    ["absent fields", { a: undefined, b: million, c: [undefined, million] }],
    ["events", { events: [{ text: million }, { list: [] }], output: million }],
    ["lists and objects without entries", { a: [], b: {}, c: [{}, []] }],
    ["nothing", {}],
  ])("is what JSON.stringify makes of it: %s", (_what, value) => {
    expect([...jsonPieces(value)].join("")).toBe(JSON.stringify(value));
  });

  it("has each event in a piece of its own", () => {
    const events = Array.from({ length: 50 }, (_, at) => ({ type: "message", text: million.slice(at) }));
    const lengths = [...jsonPieces({ output: million, events })].map(({ length }) => length);
    expect(Math.max(...lengths)).toBeLessThan(1_100_000);
  });
});

it("a stored run with a large result is sent in parts", async () => {
  const { url, post } = await serveScript(saying(million.repeat(2)));
  const runId = "large";
  expect((await post("/run", { ...asking, runId })).status).toBe(200);
  const response = await fetch(`${url}/runs/${runId}`);
  expect(response.headers.get("content-length")).toBeNull();
  expect(await response.json()).toMatchObject({ runId, result: { ok: true, output: million.repeat(2) } });
});

it.each(["", "x"])(
  "the events of a run arrive whole, whatever character a part of them ends in (%j before)",
  async (before) => {
    const { url, post } = await serveScript(saying(`${before}${"😀".repeat(200_000)}`));
    const runId = `characters-${before}`;
    const streamed = await post("/run", { ...asking, runId }, { accept: "application/x-ndjson" });
    const stored = await fetch(`${url}/runs/${runId}/events`, {
      headers: { accept: "application/x-ndjson" },
    });
    for (const response of [streamed, stored]) {
      const text = await response.text();
      expect(text).not.toContain("\ufffd");
      expect(text.match(/😀/gu)?.length).toBeGreaterThanOrEqual(200_000);
    }
  },
);

describe("a large response", () => {
  const body = { output: million.repeat(8), events: Array.from({ length: 8 }, () => ({ text: million })) };
  const small = { ok: true };
  const server = createServer((request, response) => {
    void sendLargeJson(response, 200, request.url === "/small" ? small : body, { "x-run": "1" });
  });
  let port = 0;
  beforeAll(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    port = typeof address === "object" && address !== null ? address.port : 0;
  });
  afterAll(() => server.close());

  async function answered(path: string) {
    const [response] = await once(get({ host: "127.0.0.1", port, path }), "response");
    return { headers: response.headers, body: JSON.parse(await textOf(response)) };
  }

  it("arrives completely, with the headers of a small one", async () => {
    const large = await answered("/");
    expect(large.body).toEqual(body);
    const one = await answered("/small");
    expect(one.body).toEqual(small);
    expect(one.headers["content-length"]).toBe("11");
    for (const name of ["content-type", "cache-control", "x-run"])
      expect(large.headers[name]).toBe(one.headers[name]);
  });

  it("leaves the event loop to others between two events", async () => {
    let turns = 0;
    const count = () => {
      turns += 1;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    await answered("/");
    clearImmediate(counting);
    expect(turns).toBeGreaterThan(8);
  });

  it("ends when its reader leaves", async () => {
    const [response] = await once(get({ host: "127.0.0.1", port, path: "/" }), "response");
    response.destroy();
    expect((await answered("/small")).body).toEqual(small);
  });
});
