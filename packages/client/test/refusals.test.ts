import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { AmbitClient } from "../src/index.js";

async function clientOf(answer: RequestListener, token?: string) {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return new AmbitClient({ url: `http://127.0.0.1:${port}/`, ...(token === undefined ? {} : { token }) });
}

const refusal = (code: string, more: object = {}) => ({
  ok: false,
  error: "No.",
  failure: { code, retryable: false, ...more },
  events: [],
});

describe("what a server refuses", () => {
  it("has the failure's code, gaps, issues and status", async () => {
    const gaps = [{ actor: "local", capability: "network.deny", reason: "it can't", fix: "install it" }];
    const client = await clientOf((_request, response) => {
      response.writeHead(422).end(JSON.stringify(refusal("boundary_refused", { gaps })));
    });
    await expect(client.plan({})).rejects.toMatchObject({
      name: "AmbitError",
      message: "No.",
      code: "boundary_refused",
      status: 422,
      gaps,
      issues: [],
    });
  });

  it("is found in a stream's only record", async () => {
    const client = await clientOf((_request, response) => {
      response.writeHead(401).end(`${JSON.stringify({ kind: "result", result: refusal("unauthorized") })}\n`);
    });
    await expect(client.run({}).result).rejects.toMatchObject({ code: "unauthorized", status: 401 });
  });

  it.each([
    [502, true],
    [404, false],
  ])("is told from a proxy's own %i", async (status, retryable) => {
    const client = await clientOf((_request, response) => void response.writeHead(status).end("<html>"));
    await expect(client.plugins()).rejects.toMatchObject({ code: "invalid_response", status, retryable });
  });

  it("names the fix where no server answers", async () => {
    const client = new AmbitClient({ url: "http://127.0.0.1:1" });
    await expect(client.health()).rejects.toMatchObject({
      code: "unreachable",
      retryable: true,
      message: expect.stringContaining("ambit serve"),
    });
  });
});

describe("a run that isn't begun at once", () => {
  const result = JSON.stringify({
    kind: "result",
    result: { ok: true, runId: "r", output: "done", events: [] },
  });

  it("is asked for again with the same id, after the time that the server says", async () => {
    const ids: unknown[] = [];
    const client = await clientOf((request, response) => {
      ids.push(request.headers["idempotency-key"]);
      if (ids.length === 1)
        response
          .writeHead(429, { "retry-after": "0" })
          .end(JSON.stringify(refusal("at_capacity", { retryable: true })));
      else if (ids.length === 2) request.socket.destroy();
      else response.writeHead(200).end(`${result}\n`);
    });
    const run = client.run({});
    expect((await run.result).output).toBe("done");
    expect(ids).toEqual([run.id, run.id, run.id]);
  });

  it.each([
    ["its caller chose the id", { runId: "mine" }, 0, "mine"],
    ["it may be sent again", {}, 300, expect.any(String)],
    ["neither", {}, 0, undefined],
  ])("is one that the server looks for first where %s", async (_when, request, reconnectTimeoutMs, key) => {
    const keys: unknown[] = [];
    const client = await clientOf(({ headers }, response) => {
      keys.push(headers["idempotency-key"]);
      response.writeHead(200).end(`${result}\n`);
    });
    await client.run(request, { reconnectTimeoutMs }).result;
    expect(keys).toEqual([key]);
  });

  it("is given up where nothing progresses", async () => {
    const client = await clientOf((request) => void request.socket.destroy());
    const run = client.run({}, { reconnectTimeoutMs: 300 });
    await expect(run.result).rejects.toMatchObject({ code: "unreachable", retryable: true });
  });
});

describe("a client", () => {
  it("sends its token, its project and its headers", async () => {
    const client = await clientOf((request, response) => {
      response.end(JSON.stringify({ url: request.url, authorization: request.headers.authorization }));
    }, "secret");
    expect(await client.runs({ state: "ended", limit: 2 })).toEqual({
      url: "/runs?state=ended&limit=2",
      authorization: "Bearer secret",
    });
  });

  it("encodes what it puts into a path", async () => {
    const client = await clientOf(
      (request, response) => void response.end(JSON.stringify({ url: request.url })),
    );
    expect(await client.runInfo("../a b?c#d")).toEqual({ url: "/runs/..%2Fa%20b%3Fc%23d" });
  });

  it.each<[what: string, call: (client: AmbitClient) => Promise<unknown>]>([
    ["a run", (client) => client.deleteRun("..")],
    ["a session", (client) => client.closeSession(".")],
    ["a file", (client) => client.file("run", "a/../../../../plugins")],
    ["a run's events", (client) => client.attach("..").result],
  ])("isn't asked for %s whose name would make it another request", async (_what, call) => {
    const asked: unknown[] = [];
    const client = await clientOf((request, response) => {
      asked.push(request.url);
      response.end("{}");
    });
    await expect(call(client)).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining('is named "." or ".."'),
    });
    expect(asked).toEqual([]);
    // The control: a name with dots is one.
    await client.deleteRun("...");
    expect(asked).toEqual(["/runs/..."]);
  });
});
