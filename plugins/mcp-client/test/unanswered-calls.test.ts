import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { text } from "node:stream/consumers";
import { type PublishedOutcome, RunTimedOut } from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import { makeCertificate } from "@ambit/fakes/certificate";
import { listening } from "@ambit/fakes/listening";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { configSchema } from "../src/config.js";
import { HttpToolSource } from "../src/http-source.js";
import { httpServer, TestScope } from "./support/runs.js";
import { type Version, versions } from "./support/sdk-servers.js";

const config = configSchema.parse({ allowedRanges: ["127.0.0.0/8"], loopbackWithoutTls: true });
const notMade = "The call was not made.";
const unknown = "Whether the call had an effect is unknown: find out before you repeat it.";

let scope = new TestScope();
afterEach(async () => {
  await scope.close();
  scope = new TestScope();
});

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: { readonly cursor?: string };
}

type Answer = (response: ServerResponse, message: Message) => void;

function sendJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** A server whose answers are whole, but for those of the test. */
class WireServer {
  readonly methods: string[] = [];

  constructor(
    readonly version: Version,
    readonly answers: Readonly<Record<string, Answer>>,
  ) {}

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const message: Message = JSON.parse(await text(request));
    const { id, method = "" } = message;
    this.methods.push(method);
    if (id === undefined) return void response.writeHead(202).end();
    const answer = this.answers[method];
    if (answer !== undefined) return answer(response, message);
    const result = results(this.version)[method];
    const error = { code: -32_601, message: "no such method" };
    sendJson(response, { jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) });
  }

  count(method: string): number {
    return this.methods.filter((each) => each === method).length;
  }
}

function results(version: Version): Readonly<Record<string, object>> {
  const named = { capabilities: { tools: {} }, serverInfo: { name: "r", version: "1" } };
  const whole = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
  const listed = { ...whole, tools: [{ name: "t", inputSchema: { type: "object" } }] };
  return version === "2025-11-25"
    ? { initialize: { protocolVersion: version, ...named }, "tools/list": listed }
    : { "server/discover": { ...whole, supportedVersions: [version], ...named }, "tools/list": listed };
}

async function connected(version: Version, answers: Readonly<Record<string, Answer>>) {
  const server = new WireServer(version, answers);
  const http = createServer((request, response) => void server.handle(request, response));
  const port = await listening(http, onTestFinished);
  const connecting = new HttpToolSource(config).connect(httpServer(`http://127.0.0.1:${port}/mcp`), scope);
  return { server, connecting };
}

const events = { "content-type": "text/event-stream" };
/** How a call is left without an answer, and what the model reads. */
const unanswered: readonly (readonly [how: string, answer: Answer, output: string])[] = [
  [
    "a stream that ends",
    (response) => void response.writeHead(200, events).end(": hello\n\n"),
    `ended its response without an answer. ${unknown}`,
  ],
  [
    "a stream without JSON",
    (response) => void response.writeHead(200, events).end("data: <h1>Sorry</h1>\n\n"),
    `ended its response without an answer; it sent text that isn't a message: <h1>Sorry</h1>. ${unknown}`,
  ],
  [
    "a stream that breaks off",
    (response) => void response.writeHead(200, events).write("data: {", () => response.destroy()),
    `ended its response without an answer. ${unknown}`,
  ],
  [
    "an answer that breaks off",
    (response) =>
      void response
        .writeHead(200, { "content-type": "application/json", "content-length": 100 })
        .write("{", () => response.destroy()),
    `failed: other side closed. ${unknown}`,
  ],
  ["no response", (response) => void response.destroy(), `failed: other side closed. ${unknown}`],
  [
    "202",
    (response) => void response.writeHead(202).end(),
    `ended its response without an answer. ${unknown}`,
  ],
  [
    "an answer to another call",
    (response) => sendJson(response, { jsonrpc: "2.0", id: 12_345, result: { content: [] } }),
    `ended its response without an answer. ${unknown}`,
  ],
  [
    "an answer that isn't JSON",
    (response) => void response.writeHead(200, { "content-type": "application/json" }).end("<h1>Sorry</h1>"),
    `sent an answer that isn't JSON: <h1>Sorry</h1>. ${unknown}`,
  ],
  [
    "a page",
    (response) => void response.writeHead(200, { "content-type": "text/html" }).end("<h1>Sorry</h1>"),
    `sent an answer of the type 'text/html', which isn't MCP. ${unknown}`,
  ],
  [
    "401",
    (response) => void response.writeHead(401, { "content-type": "text/plain" }).end("token expired"),
    `refuses the credentials (HTTP 401): give a token that it accepts in connection.credentials, since Ambit doesn't sign in with OAuth. It wrote: token expired. ${notMade}`,
  ],
  [
    "403",
    (response) => void response.writeHead(403).end(),
    `refuses access (HTTP 403): its connection.credentials don't permit it. ${notMade}`,
  ],
  [
    "429",
    (response) => void response.writeHead(429).end("slow down"),
    `answered HTTP 429. It wrote: slow down. ${notMade}`,
  ],
  [
    "502",
    (response) => void response.writeHead(502).end("bad gateway"),
    `answered HTTP 502. It wrote: bad gateway. ${unknown}`,
  ],
  [
    "a stream with an event's id that can't be resumed",
    (response) => void response.writeHead(200, events).end("id: 1\ndata:\n\n"),
    `ended its response without an answer. ${unknown}`,
  ],
  [
    "an address to open",
    (response, { id }) =>
      sendJson(response, {
        jsonrpc: "2.0",
        id,
        error: {
          code: -32_042,
          message: "open",
          data: {
            elicitations: [{ mode: "url", elicitationId: "1", url: "https://a.example/", message: "go" }],
          },
        },
      }),
    "wants its user to open a page first, which Ambit doesn't offer to MCP servers.",
  ],
];

describe.each(versions)("a call, %s, that gets", (version) => {
  test.each(unanswered)("%s says so at once, and isn't repeated", async (_how, answer, output) => {
    const { server, connecting } = await connected(version, { "tools/call": answer });
    const publication = await connecting;
    const made: PublishedOutcome = await publication.call({
      name: "t",
      arguments: {},
      signal: new AbortController().signal,
    });
    expect(made).toEqual({ output: `MCP server 'remote' ${output}`, isError: true });
    expect(server.count("tools/call")).toBe(1);
  });

  test("404 again after the session was opened again isn't repeated once more", async () => {
    const { server, connecting } = await connected(version, {
      "tools/call": (response) => void response.writeHead(404).end("gone"),
    });
    const publication = await connecting;
    const { output } = await publication.call({ name: "t", arguments: {}, signal: scope.signal });
    expect(output).toBe(`MCP server 'remote' answered HTTP 404. It wrote: gone. ${notMade}`);
    expect(server.count("tools/call")).toBe(2);
    expect(server.count(version === "2025-11-25" ? "initialize" : "server/discover")).toBe(2);
  });

  test("404 because the server is gone says why it couldn't be reached again", async () => {
    let isGone = false;
    const gone: Answer = (response) => void response.writeHead(404).end("no such service");
    const { server, connecting } = await connected(version, {
      "tools/call": (response, message) => {
        isGone = true;
        gone(response, message);
      },
      ...Object.fromEntries(
        ["initialize", "server/discover"].map((method): [string, Answer] => [
          method,
          (response, message) => {
            if (isGone) return gone(response, message);
            const result = results(version)[method];
            const error = { code: -32_601, message: "no such method" };
            sendJson(response, {
              jsonrpc: "2.0",
              id: message.id,
              ...(result === undefined ? { error } : { result }),
            });
          },
        ]),
      ),
    });
    const publication = await connecting;
    const { output } = await publication.call({ name: "t", arguments: {}, signal: scope.signal });
    expect(output).toBe(
      `MCP server 'remote' was lost, and couldn't be reached again: it answered HTTP 404. It wrote: no such service. ${notMade}`,
    );
    expect(server.count("tools/call")).toBe(1);
  });
});

test("a call, 2026-07-28, that needs its user's input says so, and isn't repeated", async () => {
  const asking = {
    method: "elicitation/create",
    params: { message: "Name?", requestedSchema: { type: "object", properties: {} } },
  };
  const result = { resultType: "input_required", inputRequests: { name: asking } };
  const { server, connecting } = await connected("2026-07-28", {
    "tools/call": (response, { id }) => sendJson(response, { jsonrpc: "2.0", id, result }),
  });
  const publication = await connecting;
  const { output } = await publication.call({ name: "t", arguments: {}, signal: scope.signal });
  expect(output).toBe(
    `MCP server 'remote' waits for an answer to 'elicitation/create', which Ambit doesn't offer to MCP servers. ${unknown}`,
  );
  expect(server.count("tools/call")).toBe(1);
});

test("a call whose session can't be opened again in time wasn't made", async () => {
  const isLost = Promise.withResolvers<void>();
  let opened = 0;
  const { connecting } = await connected("2025-11-25", {
    initialize: (response, { id }) => {
      opened += 1;
      if (opened > 1) return isLost.resolve();
      sendJson(response, { jsonrpc: "2.0", id, result: results("2025-11-25").initialize });
    },
    "tools/call": (response) => void response.writeHead(404).end(),
  });
  const publication = await connecting;
  const late = new AbortController();
  const calling = publication.call({ name: "t", arguments: {}, signal: late.signal });
  await isLost.promise;
  late.abort(new RunTimedOut("Tool 't' took longer than 5 ms."));
  expect((await calling).output).toBe(
    `MCP server 'remote' could not be reached in time. Tool 't' took longer than 5 ms. ${notMade}`,
  );
});

/** Pages of a list by their cursors, and the tools or the failure that they make. */
const lists: readonly (readonly [
  what: string,
  page: (at: number) => { readonly names: readonly string[]; readonly next?: string },
  outcome: readonly string[] | string,
])[] = [
  ["the same cursor on each page", () => ({ names: ["a"], next: "2" }), ["a"]],
  ["a cursor of before", (at) => ({ names: [`a${at}`], next: String(at % 3) }), ["a0", "a1", "a2", "a3"]],
  ["the same tools with new cursors", (at) => ({ names: ["a", "b"], next: `${at + 1}` }), ["a", "b"]],
  [
    "a tool twice",
    (at) => ({ names: ["a", "a", `b${at}`], ...(at < 2 ? { next: `${at + 1}` } : {}) }),
    ["a", "b0", "b1", "b2"],
  ],
  [
    "an empty page",
    (at) => ({ names: at === 1 ? [] : [`a${at}`], ...(at < 2 ? { next: `${at + 1}` } : {}) }),
    ["a0", "a2"],
  ],
  [
    "endless pages",
    (at) => ({ names: [`a${at}`], next: `${at + 1}` }),
    "lists its tools on more than 20 pages, so its tools would be missing.",
  ],
];

describe.each(versions)("a list of tools, %s, with", (version) => {
  test.each(lists)("%s", async (_what, page, outcome) => {
    let pages = 0;
    const { server, connecting } = await connected(version, {
      "tools/list": (response, { id }) => {
        const { names, next } = page(pages);
        pages += 1;
        const tools = names.map((name) => ({ name, inputSchema: { type: "object" } }));
        const whole = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
        sendJson(response, { jsonrpc: "2.0", id, result: { ...whole, tools, nextCursor: next } });
      },
    });
    const listed = await connecting.then(
      ({ tools }) => tools.map(({ name }) => name),
      (error: Error) => error.message,
    );
    expect(listed).toEqual(typeof outcome === "string" ? `MCP server 'remote' ${outcome}` : outcome);
    expect(server.count("tools/list")).toBeLessThanOrEqual(20);
  });
});

test("a server without tools lists none, and nothing is printed", async () => {
  const debug = vi.spyOn(console, "debug");
  onTestFinished(() => debug.mockRestore());
  const { connecting } = await connected("2025-11-25", {
    initialize: (response, { id }) => {
      const result = { ...results("2025-11-25").initialize, capabilities: {} };
      sendJson(response, { jsonrpc: "2.0", id, result });
    },
  });
  expect((await connecting).tools).toEqual([]);
  expect(debug).not.toHaveBeenCalled();
});

describe("a run whose server can't be reached says", () => {
  const certificate = makeCertificate("tools.example");

  async function refusal(url: string, lookup: Lookup = async () => ["127.0.0.1"]): Promise<string> {
    const connecting = new HttpToolSource(config, lookup).connect(httpServer(url), scope);
    return await connecting.then(
      () => "reached",
      (error: Error) => error.message,
    );
  }

  test("that its name can't be resolved", async () => {
    const lookup = () => Promise.reject(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }));
    expect(await refusal("https://tools.example/mcp", lookup)).toBe(
      "MCP server 'remote' could not be reached: its name can't be resolved (ENOTFOUND), so its tools would be missing.",
    );
  });

  test("that it refuses the connection", async () => {
    const closed = createServer();
    const port = await listening(closed, () => {});
    await new Promise((resolve) => closed.close(resolve));
    expect(await refusal(`http://127.0.0.1:${port}/mcp`)).toBe(
      "MCP server 'remote' could not be reached: it refuses the connection (ECONNREFUSED), so its tools would be missing.",
    );
  });

  test("that its certificate isn't accepted", async () => {
    const port = await listening(createTlsServer(certificate), onTestFinished);
    expect(await refusal(`https://tools.example:${port}/mcp`)).toBe(
      "MCP server 'remote' could not be reached: its certificate isn't accepted (DEPTH_ZERO_SELF_SIGNED_CERT), so its tools would be missing.",
    );
  });

  test("that it doesn't speak TLS", async () => {
    const port = await listening(createServer(), onTestFinished);
    expect(await refusal(`https://tools.example:${port}/mcp`)).toMatch(
      /^MCP server 'remote' could not be reached: the TLS handshake failed \(\w+\), so its tools would be missing\.$/,
    );
  });

  test("that its address is closed", async () => {
    expect(await refusal("https://tools.example/mcp", async () => ["10.0.0.1"])).toMatch(
      /^MCP server 'remote' could not be reached: tools\.example: 10\.0\.0\.1 is private.*, so its tools would be missing\.$/,
    );
  });

  test.each([
    [
      401,
      "refuses the credentials (HTTP 401): give a token that it accepts in connection.credentials, since Ambit doesn't sign in with OAuth",
    ],
    [403, "refuses access (HTTP 403): its connection.credentials don't permit it"],
    [500, "answered HTTP 500"],
  ])("that it answered %i", async (status, cause) => {
    const http = createServer((_request, response) => response.writeHead(status).end("why"));
    const port = await listening(http, onTestFinished);
    const connecting = new HttpToolSource(config).connect(httpServer(`http://127.0.0.1:${port}/mcp`), scope);
    await expect(connecting).rejects.toMatchObject({
      message: `MCP server 'remote' ${cause}. It wrote: why, so its tools would be missing.`,
      // The runner's event looks for it there.
      cause: { status },
    });
  });
});
