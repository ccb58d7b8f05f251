// needs: jail, git
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { AmbitClient } from "@ambit/client";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as FormerClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FormerTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { execa } from "execa";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { repository, type Server, startServer } from "../support/ambit.js";

const require = createRequire(import.meta.url);
const config = ["--config", require.resolve("../support/mcp-door.config.mjs")];
const tokens = { ours: randomUUID(), theirs: randomUUID() };
const hashOf = (token: string) => `sha256:${createHash("sha256").update(token).digest("hex")}`;
const env = {
  AMBIT_TOKEN: randomUUID(),
  AMBIT_E2E_TENANTS: JSON.stringify([
    { token: hashOf(tokens.ours), project: "ours" },
    { token: hashOf(tokens.theirs), project: "theirs" },
  ]),
};
const protocols = ["2026-07-28", "2025-11-25"] as const;

let server: Server;
beforeAll(async () => {
  server = await startServer(env, config);
  return () => void server.process.kill("SIGKILL");
});

type Arguments = Readonly<Record<string, unknown>>;
type Answer = { readonly action: "accept" | "decline"; readonly content?: Record<string, boolean | string> };

interface Connection {
  /** Undefined: the client shows no forms. */
  readonly answer?: (message: string) => Answer;
  readonly token?: string;
}

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly hear?: (message: string | undefined) => void;
  /** Fields of the run's request. */
  readonly request?: Arguments;
}

const who = { name: "test", version: "1.0.0" };
const metaOf = ({ request }: CallOptions) =>
  request === undefined ? {} : { _meta: { "ambit/request": request } };
const headersOf = ({ token = tokens.ours }: Connection) => ({ authorization: `Bearer ${token}` });
const endpoint = () => new URL(`${server.url}/mcp`);

/** The official clients, one for each generation of the protocol. */
const connect = {
  async "2026-07-28"(connection: Connection = {}) {
    const { answer } = connection;
    const capabilities = answer === undefined ? {} : { elicitation: {} };
    const client = new Client(who, { versionNegotiation: { mode: "auto" }, capabilities });
    if (answer !== undefined)
      client.setRequestHandler("elicitation/create", ({ params }) => answer(params.message));
    const requestInit = { headers: headersOf(connection) };
    await client.connect(new StreamableHTTPClientTransport(endpoint(), { requestInit }));
    onTestFinished(() => client.close());
    return {
      client,
      version: client.getNegotiatedProtocolVersion(),
      read: async (uri: string) => await client.readResource({ uri }),
      call: async (name: string, given: Arguments, options: CallOptions = {}) =>
        await client.callTool(
          { name, arguments: { ...given }, ...metaOf(options) },
          {
            ...(options.signal === undefined ? {} : { signal: options.signal }),
            onprogress: ({ message }) => options.hear?.(message),
          },
        ),
    };
  },
  async "2025-11-25"(connection: Connection = {}) {
    const { client, transport } = await connectFormer(connection);
    return {
      version: transport.protocolVersion,
      read: async (uri: string) => await client.readResource({ uri }),
      call: async (name: string, given: Arguments, options: CallOptions = {}) =>
        await client.callTool({ name, arguments: { ...given }, ...metaOf(options) }, CallToolResultSchema, {
          ...(options.signal === undefined ? {} : { signal: options.signal }),
          onprogress: ({ message }) => options.hear?.(message),
        }),
    };
  },
};

async function connectFormer(connection: Connection = {}) {
  const { answer } = connection;
  const client = new FormerClient(who, { capabilities: answer === undefined ? {} : { elicitation: {} } });
  if (answer !== undefined)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params.message));
  const transport = new FormerTransport(endpoint(), { requestInit: { headers: headersOf(connection) } });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return { client, transport };
}

const script = (...lines: readonly string[]) => ({ prompt: lines.join("\n") });
const asking = { permissions: { default: "ask" }, outputs: { patch: true } };
const api = () => new AmbitClient({ url: server.url, token: tokens.ours });
async function events(runId: string, type: string) {
  const all = await Array.fromAsync(api().attach(runId));
  return all.filter((event) => event.type === type);
}
const resultSchema = z.object({ content: z.unknown(), structuredContent: z.unknown() });
const textOf = (result: unknown) => JSON.stringify(resultSchema.parse(result).content);

describe.each(protocols)("the official client, %s", (protocol) => {
  it("gets what the agent said and changed, with the receipt, and hears of it meanwhile", async () => {
    const { version, call } = await connect[protocol]();
    expect(version).toBe(protocol);
    const heard: (string | undefined)[] = [];
    const result = await call("run_agent", script("write notes.txt hello", "say Done."), {
      request: { outputs: { patch: true, include: ["*.txt"] } },
      hear: (message) => heard.push(message),
    });
    expect(result).toMatchObject({
      structuredContent: {
        status: "completed",
        stopReason: "end_turn",
        output: "Done.",
        changes: [{ change: "added", path: "notes.txt" }],
        receipt: { sandbox: "local" },
      },
    });
    expect(textOf(result)).toContain("Done.\\n\\nChanged:\\n- added notes.txt");
    expect(heard.join("\n")).toContain("calls write: ");
    expect(JSON.stringify([result, heard])).not.toContain("the-deployers-secret");
    const { content } = z.object({ content: z.array(z.looseObject({})) }).parse(result);
    const [, link] = content;
    expect(link).toMatchObject({ type: "resource_link", name: "notes.txt", size: 5 });
    const { pathname, search, origin } = new URL(String(link?.uri));
    expect([origin, pathname]).toEqual([
      "https://ambit.example.com",
      expect.stringMatching(/^\/base\/runs\/.*\/notes.txt$/),
    ]);
    // As the proxy of that address passes it on.
    const file = `${server.url}${pathname.replace("/base", "")}`;
    expect(await (await fetch(`${file}${search}`)).text()).toBe("hello");
    expect((await fetch(file)).status).toBe(401);
  });

  it.each([
    [true, [{ change: "added", path: "notes.txt" }]],
    [false, []],
  ])("asks its user by a form, whose answer %s decides on the call", async (approved, changes) => {
    const questions: string[] = [];
    const answer = (message: string): Answer => {
      questions.push(message);
      return approved ? { action: "accept", content: { approved } } : { action: "decline" };
    };
    const { call } = await connect[protocol]({ answer });
    const result = await call("run_agent", script("write notes.txt hello", "say Done."), { request: asking });
    expect(result).toMatchObject({ structuredContent: { status: "completed", output: "Done.", changes } });
    expect(questions).toEqual([expect.stringContaining("wants to call write")]);
  });

  it("names the question to a client without forms, and takes the answer by continue_run", async () => {
    const { call } = await connect[protocol]();
    const paused = await call("run_agent", script("write notes.txt hello", "say Done."), { request: asking });
    expect(paused.isError).toBe(false);
    const { runId, questions } = outcomeOf(paused);
    expect(paused).toMatchObject({
      structuredContent: {
        status: "input_required",
        questions: [{ kind: "user_approval", toolName: "write" }],
      },
    });
    expect(textOf(paused)).toContain("continue_run");
    const answers = questions.map(({ id }) => ({ id, approved: true }));
    // The demo agent has no model that repeats the call.
    const more = { runId, answers, ...script("write notes.txt hello", "say Done.") };
    expect(await call("continue_run", more, { request: asking })).toMatchObject({
      structuredContent: { status: "completed", changes: [{ change: "added", path: "notes.txt" }] },
    });
    expect(await call("continue_run", { runId: "absent" })).toMatchObject({
      isError: true,
      structuredContent: { status: "refused", error: { code: "not_found" } },
    });
  });

  it("is asked for the output of a client tool, and brings it by continue_run", async () => {
    const { call } = await connect[protocol]();
    const customTools = [{ name: "choose_seat", kind: "client", inputSchema: { type: "object" } }];
    const lines = script('call choose_seat {"row":12}', "say Done.");
    const paused = await call("run_agent", lines, { request: { customTools } });
    const { runId, questions } = outcomeOf(paused);
    expect(paused).toMatchObject({
      structuredContent: {
        questions: [{ kind: "client_tool", toolName: "choose_seat", input: { row: 12 } }],
      },
    });
    const answers = questions.map(({ id }) => ({ id, output: { seat: "12A" } }));
    const ended = await call("continue_run", { runId, answers, ...lines }, { request: { customTools } });
    expect(ended).toMatchObject({ structuredContent: { status: "completed", output: "Done." } });
    const [result] = await events(outcomeOf(ended).runId, "tool_result");
    expect(JSON.stringify(result)).toContain("12A");
  });

  it("ends the run of a call that it cancels", async () => {
    const { call } = await connect[protocol]();
    const leave = new AbortController();
    const runId = randomUUID();
    const begun = Promise.withResolvers<void>();
    const result = call("run_agent", script("say begun", "sleep 60000"), {
      signal: leave.signal,
      request: { runId },
      hear: () => begun.resolve(),
    });
    await begun.promise;
    leave.abort();
    await expect(result).rejects.toThrow();
    await expect
      .poll(async () => await api().runInfo(runId), { timeout: 30_000 })
      .toMatchObject({
        state: "ended",
        result: { stopReason: "cancelled" },
      });
    expect(await call("cancel_run", { runId })).toMatchObject({ structuredContent: { cancelled: false } });
  });

  it("reads why a run failed, was refused, or can't be asked for", async () => {
    const { call } = await connect[protocol]();
    expect(await call("run_agent", script("fail no luck"))).toMatchObject({
      isError: true,
      structuredContent: { status: "failed", error: { code: "harness_failed", retryable: false } },
    });
    const request = {
      sandboxPermission: { network: "off" },
      customTools: [{ name: "post", callRef: "post", inputSchema: { type: "object" } }],
    };
    const refused = await call("run_agent", script("say no"), { request });
    expect(refused).toMatchObject({
      isError: true,
      structuredContent: { status: "refused", error: { code: "boundary_refused" } },
    });
    const [gap] = outcomeOf(refused).gaps;
    expect(gap).toMatchObject({ capability: "network.deny", fix: expect.stringMatching(/./) });
    expect(textOf(refused)).toContain("Fix: ");
    expect(await call("run_agent", { promt: "say no" })).toMatchObject({
      isError: true,
      structuredContent: { error: { code: "request_invalid", issues: [{ path: "arguments.prompt" }, {}] } },
    });
  });

  it("has no run of another tenant", async () => {
    const { call, read } = await connect[protocol]();
    const request = { outputs: { include: ["**"] } };
    const { runId } = outcomeOf(await call("run_agent", script("write a.txt mine", "say ours"), { request }));
    const stranger = await connect[protocol]({ token: tokens.theirs });
    const files = `ambit://runs/${runId}/files`;
    await expect(stranger.read(`${files}/a.txt`)).rejects.toThrow(`no run '${runId}'`);
    for (const name of ["continue_run", "cancel_run"])
      expect(await stranger.call(name, { runId })).toMatchObject({
        isError: true,
        structuredContent: { error: { code: "not_found" } },
      });
    // The control: its own tenant has it.
    expect(await call("continue_run", { runId })).toMatchObject({ structuredContent: { output: "ours" } });
    expect((await read(`${files}/a.txt`)).contents).toMatchObject([
      { text: expect.stringContaining("mine") },
    ]);
    await expect(read(`${files}/..%2F..%2F..%2Fplugins`)).rejects.toThrow('is named "." or ".."');
  });
});

describe("a task", () => {
  const callAs = { ...script("write notes.txt hello", "say Done.") };

  it("has the run's id, and is there for a later connection after the first was lost", async () => {
    const answer = (): Answer => ({ action: "accept", content: { approved: true } });
    const { client } = await connectFormer({ answer });
    const params = { name: "run_agent", arguments: callAs, _meta: { "ambit/request": asking } };
    const stream = client.experimental.tasks.callToolStream(params, CallToolResultSchema, { task: {} });
    const first = await stream.next();
    if (first.done === true || first.value.type !== "taskCreated") throw new TypeError("there is no task");
    const { taskId } = first.value.task;
    await client.close();
    // It waits for its user, whom a later connection asks.
    const later = await connectFormer({ answer });
    const { tasks } = later.client.experimental;
    await expect.poll(async () => (await tasks.getTask(taskId)).status).toBe("input_required");
    expect(await tasks.getTaskResult(taskId, CallToolResultSchema)).toMatchObject({
      structuredContent: { runId: taskId, output: "Done." },
    });
    expect(await tasks.getTask(taskId)).toMatchObject({ status: "completed" });
    const stranger = (await connectFormer({ token: tokens.theirs })).client.experimental.tasks;
    await expect(stranger.getTask(taskId)).rejects.toThrow("no task");
    await expect(stranger.cancelTask(taskId)).rejects.toThrow("no task");
  });

  it("asks its user while its client waits for the result", async () => {
    const { client } = await connectFormer({
      answer: () => ({ action: "accept", content: { approved: true } }),
    });
    const params = { name: "run_agent", arguments: callAs, _meta: { "ambit/request": asking } };
    const seen: string[] = [];
    for await (const message of client.experimental.tasks.callToolStream(params, CallToolResultSchema, {
      task: {},
    })) {
      seen.push(message.type === "taskStatus" ? message.task.status : message.type);
      if (message.type === "result")
        expect(message.result).toMatchObject({ structuredContent: { changes: [{ path: "notes.txt" }] } });
    }
    expect(seen.at(0)).toBe("taskCreated");
    expect(seen).toContain("input_required");
    expect(seen.at(-1)).toBe("result");
  });

  it("ends as cancelled", async () => {
    const { client } = await connectFormer();
    const { tasks } = client.experimental;
    const params = { name: "run_agent", arguments: script("sleep 60000") };
    const stream = tasks.callToolStream(params, CallToolResultSchema, { task: {} });
    const first = await stream.next();
    if (first.done === true || first.value.type !== "taskCreated") throw new TypeError("there is no task");
    const { taskId } = first.value.task;
    expect(await tasks.cancelTask(taskId)).toMatchObject({ status: "cancelled" });
    await expect
      .poll(async () => (await tasks.getTask(taskId)).status, { timeout: 30_000 })
      .toBe("cancelled");
    await expect(tasks.cancelTask(taskId)).rejects.toThrow("ended already");
  });

  it("is there after a restart of the server", async () => {
    const first = await startServer(env, config);
    onTestFinished(() => void first.process.kill("SIGKILL"));
    const usual = server;
    server = first;
    const { client } = await connectFormer();
    const params = { name: "run_agent", arguments: script("say kept") };
    const stream = client.experimental.tasks.callToolStream(params, CallToolResultSchema, { task: {} });
    const created = await stream.next();
    if (created.done === true || created.value.type !== "taskCreated")
      throw new TypeError("there is no task");
    const { taskId } = created.value.task;
    await expect.poll(async () => (await api().runInfo(taskId)).state).toBe("ended");
    first.process.kill("SIGKILL");
    await once(first.process, "close");
    server = usual;
    const later = await connectFormer();
    expect(await later.client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)).toMatchObject({
      structuredContent: { output: "kept" },
    });
  });
});

describe("a retried call of the 2026-07-28 protocol", () => {
  it("answers no question of another tenant's run", async () => {
    const { call } = await connect["2026-07-28"]();
    const paused = await call("run_agent", script("write notes.txt hello"), { request: asking });
    const { runId, questions } = outcomeOf(paused);
    const inputResponses = Object.fromEntries(
      questions.map(({ id }) => [id, { action: "accept" as const, content: { approved: true } }]),
    );
    const retry = async (token: string) => {
      const { client } = await connect["2026-07-28"]({ token });
      const given = { arguments: script("write notes.txt hello"), _meta: { "ambit/request": asking } };
      const requestState = JSON.stringify({ runId, after: 0 });
      const params = { name: "run_agent", ...given, inputResponses, requestState };
      return await client.callTool(params);
    };
    expect(await retry(tokens.theirs)).toMatchObject({ isError: true });
    expect((await api().interactions({ runId, state: "open" })).interactions).toHaveLength(1);
    // The control: its own tenant answers it.
    expect(await retry(tokens.ours)).toMatchObject({ structuredContent: { status: "completed" } });
    expect((await api().interactions({ runId, state: "open" })).interactions).toHaveLength(0);
  });
});

/** A request of a session that any caller can send who knows its id. */
async function listTools(token: string, sessionId: string): Promise<Response> {
  const headers = {
    authorization: `Bearer ${token}`,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-session-id": sessionId,
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/list" });
  return await fetch(endpoint(), { method: "POST", headers, body });
}

describe("a session of the 2025 protocols", () => {
  it("names the question in the result where its client fails to ask", async () => {
    const { call } = await connect["2025-11-25"]({
      answer: () => {
        throw new TypeError("the form can't be shown");
      },
    });
    expect(await call("run_agent", script("write notes.txt hello"), { request: asking })).toMatchObject({
      structuredContent: { status: "input_required", questions: [{ toolName: "write" }] },
    });
  });

  it("serves a page by each token of its session, and no other page", async () => {
    const sessionId = randomUUID();
    const request = { harness: "demo", permissions: { default: "allow" } };
    const pageOf = async (session: string) =>
      (await api().makeToken({ sessionId: session, may: ["read", "answer", "run"], request })).token;
    const { client, transport } = await connectFormer({ token: await pageOf(sessionId) });
    const call = { name: "run_agent", arguments: { ...script("say hello"), sessionId } };
    expect(await client.callTool(call, CallToolResultSchema)).toMatchObject({
      structuredContent: { status: "completed", output: "hello" },
    });
    const mcpSession = transport.sessionId ?? "";
    const statusFor = async (token: string) => (await listTools(token, mcpSession)).status;
    expect(await statusFor(await pageOf(sessionId))).toBe(200);
    expect(await statusFor(await pageOf(randomUUID()))).toBe(404);
    expect(await statusFor(tokens.ours)).toBe(404);
  });

  it("serves only the tenant that opened it", async () => {
    const { transport } = await connectFormer();
    const post = async (token: string) => await listTools(token, transport.sessionId ?? "");
    expect((await post(tokens.theirs)).status).toBe(404);
    expect((await post("none")).status).toBe(401);
    // The control: its own tenant's token.
    expect((await post(tokens.ours)).status).toBe(200);
  });
});

describe("an agent", () => {
  it("calls another one through the door, to its result", async () => {
    const inner = JSON.stringify({ prompt: "say the inner one" });
    const run = api().run({
      harness: "demo",
      permissions: { default: "allow" },
      mcpServers: [
        {
          name: "others",
          connection: {
            type: "http",
            url: `${server.url}/mcp`,
            credentials: [
              { binding: { kind: "header", name: "Authorization" }, value: `Bearer ${tokens.ours}` },
            ],
          },
        },
      ],
      messages: [{ role: "user", content: `call run_agent ${inner}` }],
    });
    const outputs: unknown[] = [];
    for await (const event of run) if (event.type === "tool_result") outputs.push(event.output);
    expect(JSON.stringify(outputs)).toContain("the inner one");
  });
});

describe("the program of docs/doors/mcp.md", () => {
  const file = "examples/door-mcp/main.ts";

  it("is on the page, and asks its user in a terminal", async () => {
    const page = await readFile(join(repository, "docs/doors/mcp.md"), "utf8");
    const program = await readFile(join(repository, file), "utf8");
    expect(page).toContain(program);
    expect(program.split("\n").length).toBeLessThanOrEqual(41);
    const { stdout, stderr } = await execa(process.execPath, [file, "run echo please", "say Done."], {
      cwd: repository,
      env: { AMBIT_URL: server.url, AMBIT_TOKEN: tokens.ours },
      // A pipe that has ended before the question comes.
      input: "yes\n",
    });
    expect(stderr).toContain("… calls run: echo please");
    expect(stdout).toContain("Done.\n\n(run ");
  });
});

describe("a client on standard input and output", () => {
  it("runs an agent, without a server", { timeout: 120_000 }, async () => {
    const program = join(repository, "server/bin/ambit.mjs");
    const client = new Client(who, { versionNegotiation: { mode: "auto" } });
    const args = [program, ...config, "door", "mcp", "--agent", "demo"];
    const transport = new StdioClientTransport({ command: process.execPath, args, stderr: "pipe" });
    await client.connect(transport);
    const request = { outputs: { include: ["**/*"] } };
    const lines = [
      "say hello",
      "write a/b+c.txt text",
      "run printf '\\377' > raw",
      "run head -c 9000000 /dev/zero > large",
    ];
    const result = await client.callTool({
      name: "run_agent",
      arguments: script(...lines),
      _meta: { "ambit/request": request },
    });
    expect(result).toMatchObject({
      structuredContent: {
        status: "completed",
        output: "hello",
        files: [{ path: "a/b+c.txt", size: 4 }, {}, {}],
      },
    });
    // No server has a URL for them: a short text is part of the result, and the others come over this connection.
    expect(result.content).toContainEqual({
      type: "resource",
      resource: {
        uri: expect.stringMatching(/^ambit:.*\/a\/b%2Bc.txt$/),
        mimeType: "text/plain",
        text: "text",
      },
    });
    const uris = new Map(
      result.content.flatMap((block) => (block.type === "resource_link" ? [[block.name, block.uri]] : [])),
    );
    const read = async (name: string) => await client.readResource({ uri: uris.get(name) ?? "" });
    expect((await read("raw")).contents).toMatchObject([{ blob: "/w==" }]);
    await expect(read("large")).rejects.toThrow("large has more than 8388608 bytes");
    const uri = uris.get("raw")?.replace(/raw$/, "a/b%2Bc.txt") ?? "";
    expect((await client.readResource({ uri })).contents).toMatchObject([{ uri, text: "text" }]);
    await expect(client.readResource({ uri: "ambit://runs/none/files/x" })).rejects.toThrow("no run 'none'");
    await client.close();
  });
});

const outcomeSchema = z.object({
  runId: z.string().default(""),
  questions: z.array(z.object({ id: z.string() })).default([]),
  error: z.object({ gaps: z.array(z.unknown()) }).optional(),
});

/** What a test goes on with. */
function outcomeOf(result: unknown) {
  const { structuredContent } = resultSchema.parse(result);
  const { runId, questions, error } = outcomeSchema.parse(structuredContent);
  return { runId, questions, gaps: error?.gaps ?? [] };
}
