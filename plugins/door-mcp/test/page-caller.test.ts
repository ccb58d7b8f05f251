import type { DoorCall } from "@ambit/core/plugin";
import { expect, it } from "vitest";
import { configSchema } from "../src/config.js";
import { Endpoint } from "../src/endpoint.js";

const config = configSchema.parse({ request: { harness: "gemini", permissions: { default: "allow" } } });

/** A call of `run_agent` by a page with a token of one session, and the bodies that reach Ambit's API. */
async function callFromPage(given: object, meta: object = {}) {
  const bodies: unknown[] = [];
  const api: typeof fetch = async (_url, init) => {
    if (typeof init?.body === "string") bodies.push(JSON.parse(init.body));
    if (init?.method === "POST") return Response.json({ ok: true, runId: "r1", state: "running" });
    const result = { ok: true, runId: "r1", events: [], output: "hello", stopReason: "end_turn" };
    return new Response(`${JSON.stringify({ kind: "result", result })}\n`);
  };
  const body = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name: "run_agent",
      arguments: given,
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        ...meta,
      },
    },
  };
  const headers = {
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "run_agent",
  };
  const call: DoorCall = {
    request: new Request("http://localhost/mcp", { method: "POST", headers }),
    json: () => Promise.resolve(body),
    path: () => "",
    fetch: api,
    caller: "page",
    callerId: "page",
  };
  const text = await (await new Endpoint(config, "1.0.0").post(call)).text();
  return { text, bodies };
}

it("takes only the prompt and the session of a page, whose token has the request", async () => {
  const { text, bodies } = await callFromPage({ prompt: "hello", sessionId: "s1" });
  expect(text).toContain('"output":"hello"');
  expect(bodies).toEqual([
    { runId: expect.any(String), sessionId: "s1", messages: [{ role: "user", content: "hello" }] },
  ]);
});

it.each([
  [{ agent: "codex" }, {}, "arguments.agent"],
  [{ model: "large" }, {}, "arguments.model"],
  [{}, { "ambit/request": { permissions: { default: "allow" } } }, '_meta[\\"ambit/request\\"]'],
])("refuses what a page chooses beside that: %j %j", async (given, meta, path) => {
  const { text, bodies } = await callFromPage({ prompt: "hello", ...given }, meta);
  expect(text).toContain(`{"path":"${path}","message":"is the token's: leave it out"}`);
  expect(bodies).toEqual([]);
});
