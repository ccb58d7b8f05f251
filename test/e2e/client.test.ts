import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { type AgentEvent, AmbitClient, AmbitError, type Run, type RunRequest } from "@ambit/client";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
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

  it("fails with what is wrong with the request", async () => {
    const failing = client.run({
      harness: "demo",
      sandboxPermission: { network: { mode: "sometimes" } },
    } as never);
    await expect(failing.result).rejects.toMatchObject({
      code: "request_invalid",
      issues: [expect.objectContaining({ path: expect.stringContaining("sandboxPermission.network") })],
    });
  });

  it("is refused with every gap and its fix, as in its plan", async () => {
    const request: RunRequest = {
      ...script("call weather"),
      customTools: [
        { name: "weather", kind: "callback", callRef: "weather", inputSchema: { type: "object" } },
      ],
      toolCallback: { endpoint: "http://127.0.0.1:1/" },
      sandboxPermission: { network: "off" },
    };
    const error = await client.run(request).result.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(AmbitError);
    expect(error).toMatchObject({ code: "boundary_refused", retryable: false });
    const gaps = error instanceof AmbitError ? error.gaps : [];
    expect(gaps).toEqual([expect.objectContaining({ capability: "network.deny", fix: expect.any(String) })]);
    await expect(client.plan(request)).rejects.toMatchObject({ code: "boundary_refused", gaps });
  });

  it("fails as its agent fails, with the result so far", async () => {
    await expect(client.run(script("say almost", "fail no luck")).result).rejects.toMatchObject({
      code: "harness_failed",
      result: { output: "almost" },
    });
  });

  it.each([
    ["approved", true, "18"],
    ["denied", false, "denied"],
  ])("asks for an approval, and is %s", async (_what, approved, said) => {
    const asked: unknown[] = [];
    const request: RunRequest = {
      ...script("run echo 18"),
      permissions: { default: "ask" },
    };
    const run = client.run(request, {
      onApproval: (question) => {
        asked.push(question.payload?.input);
        return approved;
      },
    });
    const results = (await read(run)).filter((event) => event.type === "tool_result");
    expect(asked).toHaveLength(1);
    expect(JSON.stringify(results)).toContain(said);
  });

  it.each([
    ["while its call waits", undefined],
    ["in the session's next turn", { waitMs: 0 }],
  ])("has a client tool's output %s", async (_when, interactions) => {
    const request: RunRequest = {
      ...script('call seat {"row": 12}', "say done"),
      customTools: [clientTool("seat")],
      ...(interactions === undefined ? {} : { interactions }),
    };
    const given: unknown[] = [];
    const run = client.run(request, {
      tools: {
        seat: async (input) => {
          given.push(input);
          return { seat: "12A" };
        },
      },
      // The demo agent has no model that remembers its script.
      continueWith: (paused) => paused,
    });
    const results = (await read(run)).filter((event) => event.type === "tool_result");
    expect(given).toEqual([{ row: 12 }]);
    expect(results).toEqual([expect.objectContaining({ output: '{"seat":"12A"}' })]);
    expect(await run.result).toMatchObject({ output: "done", stopReason: "end_turn" });
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
    for await (const event of run) {
      events.push(event);
      if (event.type !== "message_start") continue;
      first.process.kill("SIGTERM");
      void first.exit.then(() => serve({ AMBIT_PORT: new URL(first.url).port }));
    }
    expect(await run.result).toMatchObject({ ok: true, output: "hello\nbye" });
  });
});
