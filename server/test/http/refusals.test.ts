import { request } from "node:http";
import type { FailedResult, PlanResponse } from "@ambit/core";
import { describe, expect, it, vi } from "vitest";
import { saying, waiting } from "../support/scripted-agent.js";
import { asking, bodyOf, serveScript } from "../support/server.js";

const token = "s3cret-token";
const bearer = { authorization: `Bearer ${token}` };
const tooLong = " ".repeat(16 * 1024 * 1024 + 1);

describe("the precedence of refusals", () => {
  it.each([
    ["a wrong token beats all else", 401, "unauthorized", { authorization: "Bearer wrong" }, "{not json"],
    ["what isn't JSON", 400, "request_invalid", bearer, "{not json"],
    ["a body that is too large", 413, "request_invalid", bearer, tooLong],
    ["an uncovered boundary", 422, "boundary_refused", bearer, { sandboxPermission: { network: "off" } }],
    ["a field that isn't known", 400, "request_invalid", bearer, { harnes: "scripted" }],
    ["nothing to say", 400, "request_invalid", bearer, { messages: [] }],
  ])("%s: %i", async (_, status, code, headers, body) => {
    const { post } = await serveScript(saying("x"), { token });
    const response = await post("/run", body, headers);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ ok: false, failure: { code }, events: [] });
  });

  it("refuses beyond its capacity before it reads the body, but after the token", async () => {
    const { post } = await serveScript(waiting, { token, configuration: { limits: { concurrentRuns: 1 } } });
    const running = await post("/run", asking, { ...bearer, accept: "application/x-ndjson" });
    const full = await post("/run", "{not json", bearer);
    expect(full.status).toBe(429);
    expect(full.headers.get("retry-after")).toBe("1");
    expect(await full.json()).toMatchObject({ failure: { code: "at_capacity", retryable: true } });
    expect((await post("/run", "{not json")).status).toBe(401);
    await running.body?.cancel();
  });

  it("frees the slot after every refusal", async () => {
    const { post } = await serveScript(saying("x"), { configuration: { limits: { concurrentRuns: 1 } } });
    const refusals = ["{not json", tooLong, { sandboxPermission: { network: "off" } }, { harnes: "x" }];
    for (const body of refusals) expect((await post("/run", body)).status).not.toBe(429);
    expect((await post("/run", asking)).status).toBe(200);
  });

  it("refuses a run for lack of memory before it reads the body, and still answers health checks", async () => {
    const { post, url } = await serveScript(saying("x"), { configuration: { limits: { memoryMb: 1 } } });
    const refused = await post("/run", "{not json");
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await refused.json()).toMatchObject({
      error: expect.stringMatching(/^The runner is out of memory \(\d+ of 1 MiB are in use\)/),
      failure: { code: "at_capacity", retryable: true },
    });
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  it("frees the slot after a body that is nested too deep", async () => {
    const { post } = await serveScript(saying("x"), { configuration: { limits: { concurrentRuns: 1 } } });
    const content = `${"[".repeat(4_000)}${"]".repeat(4_000)}`;
    const refused = await post(
      "/run",
      `{"messages":[{"role":"user","content":[{"type":"tool_call","input":{"a":${content}}}]}]}`,
    );
    expect(refused.status).toBe(400);
    expect((await bodyOf<FailedResult>(refused)).failure.issues).toEqual([
      { path: "messages[0].content", message: expect.stringContaining("more than 100 levels") },
    ]);
    expect((await post("/run", asking)).status).toBe(200);
  });

  it("lists every gap with its fix, together with other issues", async () => {
    const { post } = await serveScript(saying("x"));
    const body = { sandboxPermission: { network: "restricted", filesystem: "readonly" }, messages: [] };
    const { failure } = await bodyOf<FailedResult>(await post("/run", body));
    expect(failure.gaps?.map(({ capability }) => capability)).toEqual(
      expect.arrayContaining(["network.deny", "filesystem.read-only"]),
    );
    expect(failure.issues).toEqual([
      { path: "messages", message: "No user message to send (prompt/messages empty)." },
    ]);
  });

  describe.each(["application/x-ndjson", "text/event-stream"])("in a %s stream", (accept) => {
    it.each([
      ["a missing token", 401, 401, {}, asking],
      ["a page of another site", 403, 403, { ...bearer, origin: "http://evil.example" }, asking],
      ["a body that is too large", 413, 413, bearer, tooLong],
      ["what isn't JSON", 200, 400, bearer, "{not json"],
      ["a field that isn't known", 200, 400, bearer, { harnes: "scripted" }],
      ["nothing to say", 200, 400, bearer, "{}"],
      ["an uncovered boundary", 200, 422, bearer, { ...asking, sandboxPermission: { network: "off" } }],
    ])("%s is one record, with the status %i; in JSON with %i", async (_, status, inJson, headers, body) => {
      const { post } = await serveScript(saying("x"), { token });
      const response = await post("/run", body, { ...headers, accept });
      const text = (await response.text()).replace(/^id: 1\ndata: /, "");
      expect(response.status).toBe(status);
      expect(response.headers.get("content-type")).toBe(accept);
      const json = await post("/run", body, headers);
      expect(json.status).toBe(inJson);
      expect(JSON.parse(text)).toEqual({ kind: "result", result: await json.json() });
    });

    it("a full runner is one record, with the status 429", async () => {
      const { post } = await serveScript(waiting, { configuration: { limits: { concurrentRuns: 1 } } });
      const running = await post("/run", asking, { accept });
      const full = await post("/run", asking, { accept });
      expect(full.status).toBe(429);
      expect((await full.text()).replace(/^id: 1\ndata: /, "")).toContain('"code":"at_capacity"');
      await running.body?.cancel();
    });
  });

  it("limits a body without a declared length", async () => {
    const { url } = await serveScript(saying("x"));
    const status = await new Promise((resolve, reject) => {
      const sent = request(`${url}/run`, { method: "POST" }, (response) => {
        resolve(response.statusCode);
        sent.destroy();
      });
      sent.on("error", reject);
      const chunk = Buffer.alloc(64 * 1024, " ");
      // One at a time: a client that never reads gets the end of its connection before the response.
      const more = () => {
        if (!sent.destroyed) sent.write(chunk, () => setImmediate(more));
      };
      more();
    });
    expect(status).toBe(413);
  });
});

describe("an address that other machines can reach", () => {
  const reachable = { configuration: { server: { host: "0.0.0.0" } } };

  it.each([
    ["without a token", undefined, "no token guards it"],
    ["with a token that can be guessed", "fifteen-chars-1", "fewer than 16 characters"],
  ])("isn't listened on %s", async (_, given, message) => {
    const options = given === undefined ? reachable : { ...reachable, token: given };
    await expect(serveScript(saying("x"), options)).rejects.toThrow(message);
  });

  it("is accepted with a long token", async () => {
    const { server } = await serveScript(saying("x"), { ...reachable, token: "sixteen-chars-12" });
    expect(server.url).toMatch(/^http:\/\/0\.0\.0\.0:\d+$/);
  });
});

describe("the token", () => {
  it.each([
    ["authorization", `Bearer ${token}`],
    ["authorization", `bearer ${token}`],
    ["x-ambit-token", token],
  ])("is read from %s: %s", async (name, value) => {
    const { url } = await serveScript(saying("x"), { token });
    expect((await fetch(`${url}/plugins`, { headers: { [name]: value } })).status).toBe(200);
    const wrong = await fetch(`${url}/plugins`, { headers: { [name]: `${value}x` } });
    expect(wrong.status).toBe(401);
    expect(wrong.headers.get("www-authenticate")).toBe("Bearer");
  });

  it.each([
    [200, ["@ambit/compat-agenta"]],
    [401, []],
  ])("is read from a dialect's header: %i with %j", async (status, plugins) => {
    const { url } = await serveScript(saying("x"), { token, plugins });
    const headers = { "x-agenta-runner-token": token };
    expect((await fetch(`${url}/plugins`, { headers })).status).toBe(status);
    expect((await fetch(`${url}/plugins`, { headers: { "x-agenta-runner-token": "x" } })).status).toBe(401);
  });

  it.each([
    ["POST", "/run"],
    ["POST", "/stream"],
    ["POST", "/plan"],
    ["POST", "/kill"],
    ["POST", "/runs/x/cancel"],
    ["GET", "/plugins"],
    ["GET", "/metrics"],
    ["GET", "/subscription-status"],
    ["GET", "/nowhere"],
  ])("guards %s %s", async (method, path) => {
    const { url } = await serveScript(saying("x"), { token });
    expect((await fetch(`${url}${path}`, { method })).status).toBe(401);
  });

  it("isn't needed for the health check", async () => {
    const { url } = await serveScript(saying("x"), { token });
    const health = async (): Promise<unknown> => (await fetch(`${url}/health`)).json();
    await vi.waitFor(
      async () =>
        expect(await health()).toEqual({
          status: "ok",
          probing: false,
          replicaId: expect.any(String),
        }),
      30_000,
    );
    expect((await fetch(`${url}/openapi.json`)).status).toBe(200);
  });
});

describe("routes", () => {
  it("are named for a wrong method or an unknown path", async () => {
    const { url } = await serveScript(saying("x"));
    const wrong = await fetch(`${url}/run`);
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get("allow")).toBe("POST");
    expect(await wrong.json()).toMatchObject({ ok: false, failure: { code: "not_found" } });
    const none = await fetch(`${url}/nowhere`);
    expect(none.status).toBe(404);
    expect(await none.json()).toMatchObject({ ok: false, error: "Not found" });
  });

  it("refuse an invalid session to end", async () => {
    const { post } = await serveScript(saying("x"));
    const none = await post("/kill", {});
    expect(none.status).toBe(400);
    expect(await none.json()).toMatchObject({
      failure: { issues: [{ path: "sessionId", message: "is required: a string" }] },
    });
    expect(await (await post("/kill", { sessionid: "s" })).json()).toMatchObject({
      failure: {
        issues: [
          { path: "sessionId", message: "is required: a string" },
          { path: "sessionid", message: "is not a known field: did you mean `sessionId`?" },
        ],
      },
    });
    expect(await (await post("/cancel", {})).json()).toMatchObject({
      failure: { issues: [{ path: "id", message: "is required: a string" }, { path: "sessionId" }] },
    });
    expect((await post("/kill", { sessionId: "x".repeat(20_000) })).status).toBe(413);
  });

  it("report for every harness that no login of the runner is used", async () => {
    const { url } = await serveScript(saying("x"));
    const status = await fetch(`${url}/subscription-status`);
    expect(await status.json()).toEqual({
      version: 1,
      harnesses: { scripted: { state: "not_configured" } },
    });
  });

  it("can plan without a run", async () => {
    let ran = false;
    const { post } = await serveScript(async function* () {
      ran = true;
      yield { type: "done" };
    });
    const accepted = await bodyOf<PlanResponse>(await post("/plan", asking));
    expect(accepted).toMatchObject({ ok: true, plan: { sandbox: "none", required: [], accepted: [] } });
    expect(accepted.plan.actors.map(({ kind }) => kind)).toEqual(["sandbox", "harness"]);
    const refused = await post("/plan", { ...asking, sandboxPermission: { network: "off" } });
    expect(refused.status).toBe(422);
    expect(await refused.json()).toMatchObject({ ok: false, failure: { code: "boundary_refused" } });
    expect(ran).toBe(false);
  });
});

describe("web pages", () => {
  it.each([
    ["a rebound name", { host: "attacker.example" }, 403],
    ["another site's script", { origin: "https://attacker.example" }, 403],
    ["a sandboxed frame", { origin: "null" }, 403],
    ["this machine by name", { host: "localhost:1" }, 200],
    ["a page of another port of this machine", { origin: "http://localhost:3000" }, 403],
    [
      "a page of another port, with its own Host",
      { host: "localhost:1", origin: "http://localhost:3000" },
      403,
    ],
    ["this server's own page", { host: "localhost:1", origin: "http://localhost:1" }, 200],
    ["a listed proxy", { host: "ambit.example" }, 200],
    ["a listed proxy's page", { origin: "https://ambit.example" }, 200],
    ["another site's link, image or form", { "sec-fetch-site": "cross-site" }, 403],
    ["the same of another port of this machine", { "sec-fetch-site": "same-site" }, 403],
    ["an address that a user typed", { "sec-fetch-site": "none" }, 200],
    ["this server's own page, as the browser says", { "sec-fetch-site": "same-origin" }, 200],
  ])("are told apart: %s", async (_, headers, status) => {
    const { url } = await serveScript(saying("x"), {
      configuration: { server: { allowedHosts: ["ambit.example"] } },
    });
    expect(await statusOf(`${url}/health`, headers)).toBe(status);
  });
});

/** With Node's own client: fetch doesn't let a caller choose its Host. */
function statusOf(url: string, headers: Record<string, string | undefined>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers }, (response) => resolve(response.resume().statusCode));
    sent.on("error", reject).end();
  });
}
