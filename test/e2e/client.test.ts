import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { type AgentEvent, AmbitClient, AmbitError, type Run, type RunRequest } from "@ambit/client";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { type Server, serve, startServer } from "./support/ambit.js";

let server: Server;
let client: AmbitClient;

beforeAll(async () => {
  server = await startServer({}, []);
  client = new AmbitClient({ url: server.url });
  return () => void server.process.kill("SIGKILL");
});

const script = (...lines: readonly string[]): RunRequest => ({
  harness: "demo",
  messages: [{ role: "user", content: lines.join("\n") }],
});
const clientTool = (name: string) => ({ name, kind: "client" as const, inputSchema: { type: "object" } });

async function read(run: Run): Promise<AgentEvent[]> {
  const events: AgentEvent[] = [];
  for await (const event of run) events.push(event);
  return events;
}

const caseSchema = z.object({
  name: z.string(),
  script: z.array(z.string()),
  request: z.looseObject({}).optional(),
  answers: z
    .object({ approved: z.boolean().optional(), tools: z.record(z.string(), z.unknown()).optional() })
    .optional(),
  toolOutput: z.string().optional(),
  ends: z.looseObject({}).optional(),
  fails: z
    .object({
      code: z.string(),
      retryable: z.boolean(),
      output: z.string().optional(),
      gaps: z.array(z.string()).optional(),
      issues: z.array(z.string()).optional(),
    })
    .optional(),
});
const cases = z
  .array(caseSchema)
  .parse(JSON.parse(readFileSync(new URL("../../clients/cases.json", import.meta.url), "utf8")));

describe("the table that the clients of every language pass", () => {
  it.each(cases)("$name", async ({ script: lines, request, answers, toolOutput, ends, fails }) => {
    const tools = Object.entries(answers?.tools ?? {}).map(([name, output]) => [name, () => output]);
    const { approved } = answers ?? {};
    const run = client.run(
      { ...script(...lines), ...request },
      {
        ...(tools.length === 0 ? {} : { tools: Object.fromEntries(tools) }),
        ...(approved === undefined ? {} : { onApproval: () => approved }),
        // The demo agent has no model that remembers its script.
        continueWith: (paused) => paused,
      },
    );
    if (fails !== undefined) {
      const error = await run.result.catch((reason: unknown) => reason);
      if (!(error instanceof AmbitError)) throw new TypeError("the run didn't fail");
      expect(error).toMatchObject({ code: fails.code, retryable: fails.retryable });
      expect(error.gaps.map(({ capability }) => capability)).toEqual(fails.gaps ?? []);
      expect(error.gaps.every(({ fix }) => fix !== "")).toBe(true);
      for (const path of fails.issues ?? [])
        expect(JSON.stringify(error.issues)).toContain(`"path":"${path}`);
      expect(error.result?.output).toBe(fails.output);
      return;
    }
    const events = await read(run);
    expect(await run.result).toMatchObject({ ok: true, ...ends });
    const outputs = events.flatMap((event) => (event.type === "tool_result" ? [String(event.output)] : []));
    if (toolOutput !== undefined) expect(outputs.join("\n")).toContain(toolOutput);
  });
});

describe("a run of the client", () => {
  it("has its events, and then its result", async () => {
    const run = client.run(script("say hello", "say bye"));
    const events = await read(run);
    const text = events.map((event) => (event.type === "message_delta" ? event.delta : "")).join("");
    expect(text).toBe("hello\nbye");
    expect(await run.result).toMatchObject({ ok: true, runId: run.id, output: "hello\nbye" });
  });

  it("has its result where the events aren't read, and its events once", async () => {
    const run = client.run(script("say hello"));
    expect((await run.result).output).toBe("hello");
    await expect(read(run)).rejects.toThrow("read already");
  });

  it("tells the model of a client tool that throws, and fails where an approval throws", async () => {
    const request = { ...script("call seat", "say done"), customTools: [clientTool("seat")] };
    const run = client.run(request, { tools: { seat: () => Promise.reject(new Error("no seats")) } });
    expect(JSON.stringify(await read(run))).toContain("no seats");

    const asking = client.run(
      { ...script("run echo 18", "sleep 60000"), permissions: { default: "ask" } },
      { onApproval: () => Promise.reject(new Error("closed")) },
    );
    await expect(read(asking)).rejects.toThrow("closed");
    await expect.poll(async () => (await client.runInfo(asking.id)).state).toBe("ended");
  });

  it("pauses where its question has no answer here, which another caller gives", async () => {
    const request = { ...script("call seat"), customTools: [clientTool("seat")] };
    const run = client.run(request);
    expect(await run.result).toMatchObject({ stopReason: "paused" });
    const { interactions } = await client.interactions({ runId: run.id, state: "open" });
    const [question] = interactions;
    expect(question).toMatchObject({ kind: "client_tool", runId: run.id });
    await client.answer(run.id, question?.id ?? "", { output: "12A" });
    expect((await client.interactions({ runId: run.id, state: "answered" })).interactions).toHaveLength(1);
  });

  it.each([
    ["cancel", async (run: Run) => void (await run.cancel())],
    ["its signal", async (_run: Run, controller: AbortController) => controller.abort()],
  ])("is cancelled by %s", async (_what, cancel) => {
    const controller = new AbortController();
    const run = client.run(script("say begun", "sleep 60000"), { signal: controller.signal });
    for await (const event of run) if (event.type === "message_delta") await cancel(run, controller);
    expect(await run.result).toMatchObject({ ok: true, stopReason: "cancelled" });
    expect(await run.cancel()).toBe(false);
  });

  it("can be started, followed from a record on, listed and deleted", async () => {
    const { runId } = await client.start({ ...script("say hello"), sessionId: "started" });
    const events = await read(client.attach(runId));
    expect(await read(client.attach(runId, { after: 2 }))).toEqual(events.slice(2));
    expect((await client.runs({ sessionId: "started" })).runs).toEqual([expect.objectContaining({ runId })]);
    expect((await client.sessions()).sessions).toContainEqual(
      expect.objectContaining({ sessionId: "started" }),
    );
    expect(await client.closeSession("started")).toMatchObject({ ended: true });
    expect(await client.deleteRun(runId)).toMatchObject({ ok: true });
    await expect(client.runInfo(runId)).rejects.toMatchObject({ status: 404 });
  });
});

/** Forwards connections to the server. Of each it passes as many bytes of the answer as `room` says, then cuts it. */
async function cuttingProxy(room: (connection: number) => number) {
  let connections = 0;
  const open = new Set<Socket>();
  const proxy = createServer((caller) => {
    let left = room(connections);
    connections += 1;
    const upstream = connect(Number(new URL(server.url).port), "127.0.0.1");
    for (const socket of [caller, upstream]) {
      open.add(socket);
      socket.on("error", () => undefined).on("close", () => open.delete(socket));
    }
    caller.pipe(upstream);
    caller.on("close", () => upstream.destroy());
    upstream.on("close", () => caller.end());
    upstream.on("data", (bytes: Buffer) => {
      caller.write(bytes.subarray(0, left), () => {
        if (left <= 0) caller.destroy();
      });
      left -= bytes.length;
    });
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => {
    proxy.close();
    for (const socket of open) socket.destroy();
  });
  const address = proxy.address();
  return {
    client: new AmbitClient({ url: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}` }),
    connections: () => connections,
  };
}

describe("a connection that is cut", () => {
  it("anywhere in a stream loses no event, and doubles none", { timeout: 300_000 }, async () => {
    const { runId } = await client.start(script("say 世界"));
    const whole = await read(client.attach(runId));
    const response = await fetch(`${server.url}/runs/${runId}/events`, { headers: { connection: "close" } });
    const bytes = (await response.arrayBuffer()).byteLength;
    expect(bytes).toBeGreaterThan(200);
    // The head of the response is cut too; beyond the end nothing is.
    const step = process.env.AMBIT_SOAK === "1" ? 1 : 29;
    const cuts = Array.from({ length: (bytes + 400) / step }, (_, index) => index * step).values();
    const reader = async () => {
      for (const at of cuts) {
        const proxy = await cuttingProxy((connection) => (connection === 0 ? at : Number.POSITIVE_INFINITY));
        const run = proxy.client.attach(runId);
        expect(await read(run), `cut at byte ${at}`).toEqual(whole);
        expect(await run.result).toMatchObject({ ok: true, runId });
      }
    };
    // A run has 32 readers at most.
    await Promise.all(Array.from({ length: 16 }, reader));
  });

  it("again and again while a run goes on: its answers arrive, and it runs once", async () => {
    const proxy = await cuttingProxy((connection) => (connection % 3 === 2 ? Number.POSITIVE_INFINITY : 700));
    const run = proxy.client.run(
      {
        ...script(
          "say one",
          "call seat",
          "run echo once >> runs.txt",
          "sleep 300",
          "run cat runs.txt",
          "say two",
        ),
        customTools: [clientTool("seat")],
        permissions: { default: "allow" },
      },
      { tools: { seat: () => "12A" } },
    );
    const events = await read(run);
    expect(proxy.connections()).toBeGreaterThan(2);
    expect(await run.result).toMatchObject({ output: expect.stringMatching(/^one\s+two$/) });
    const outputs = events.flatMap((event) => (event.type === "tool_result" ? [event.output] : []));
    expect(outputs).toContainEqual(expect.stringContaining("12A"));
    expect(outputs.filter((output) => String(output).trim() === "once")).toHaveLength(1);
  });

  it("by a server that restarts: the run's end is read from the next one", async () => {
    const first = await serve({ AMBIT_PORT: "0" });
    const run = new AmbitClient({ url: first.url }).run(script("say hello", "sleep 1500", "say bye"));
    const events: AgentEvent[] = [];
    const next = Promise.withResolvers<Server>();
    for await (const event of run) {
      events.push(event);
      if (event.type !== "message_start") continue;
      first.process.kill("SIGTERM");
      next.resolve(first.exit.then(() => serve({ AMBIT_PORT: new URL(first.url).port })));
    }
    expect(await run.result).toMatchObject({ ok: true, output: "hello\nbye" });
    // It is ended with the test only once it has started.
    await next.promise;
  });
});
