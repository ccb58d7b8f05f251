import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { OtlpReceiver, type ReceivedSpan } from "@ambit/otlp-receiver";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  bodyOf,
  demo,
  emptyFolder,
  isMessage,
  ndjson,
  readUntil,
  recordsOf,
  resultOf,
  type Server,
  serve,
} from "./support/ambit.js";
import { keptEvidence } from "./support/configurations.js";

const secret = "of-the-operator-4711";
const hex = (digit: string, digits: number) => digit.repeat(digits);
const traceparent = (digit: string) => `00-${hex(digit, 32)}-${hex(digit, 16)}-01`;

async function receiver(): Promise<OtlpReceiver> {
  const received = await OtlpReceiver.start();
  onTestFinished(() => received[Symbol.asyncDispose]());
  return received;
}

/** OpenTelemetry's variables: everything goes to this receiver, soon. */
function variables(received: OtlpReceiver, more: Record<string, string> = {}): Record<string, string> {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: received.url,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=${secret}`,
    OTEL_BSP_SCHEDULE_DELAY: "50",
    OTEL_BLRP_SCHEDULE_DELAY: "50",
    ...more,
  };
}

const rootsIn = ({ spans }: OtlpReceiver, traceId: string): ReceivedSpan[] =>
  spans.filter((span) => span.traceId === traceId && span.name.startsWith("invoke_agent"));

async function rootOf(received: OtlpReceiver, traceId: string): Promise<ReceivedSpan> {
  await expect.poll(() => rootsIn(received, traceId), { timeout: 60_000 }).toHaveLength(1);
  const [root] = rootsIn(received, traceId);
  if (root === undefined) throw new Error("unreachable");
  return root;
}

/** The default plugins except the store. */
async function withoutStore(): Promise<readonly string[]> {
  const file = join(await emptyFolder(), "ambit.config.json");
  const config = { extends: "defaults", without: ["@ambit/store-sqlite"] };
  await writeFile(file, JSON.stringify({ ...config, probes: { keepAcrossRestarts: true } }));
  return ["--config", file];
}

/** A run that asks before it runs a command, up to its question. */
async function asking(server: Server, body: object, digit: string) {
  const headers = { ...ndjson, traceparent: traceparent(digit) };
  const script = { ...demo("run! echo hello"), permissions: { default: "ask" } };
  const records = recordsOf(await server.post("/run", { ...script, ...body }, headers));
  const asked = await readUntil(
    records,
    (record) => record.kind === "event" && record.event.type === "interaction_request",
  );
  if (asked.kind !== "event" || asked.event.type !== "interaction_request") throw new Error("unreachable");
  return { records, id: asked.event.id };
}

describe("the telemetry of a server, by OpenTelemetry's variables", () => {
  test.for([
    ["http/json", (received: OtlpReceiver) => received.url],
    ["grpc", (received: OtlpReceiver) => received.grpcUrl],
  ] as const)("arrives whole over %s", async ([protocol, urlOf]) => {
    const received = await receiver();
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: urlOf(received), OTEL_EXPORTER_OTLP_PROTOCOL: protocol };
    const server = await serve(variables(received, endpoint));
    const runs = 5;
    for (let count = 0; count < runs; count += 1)
      expect(await bodyOf(await server.post("/run", demo("run echo a")))).toMatchObject({ ok: true });
    server.process.kill("SIGTERM");
    expect(await server.exit).toBe(0);
    const { spans, points, logs } = received;
    expect(spans.filter(({ name }) => name === "invoke_agent demo")).toHaveLength(runs);
    const ids = new Set(spans.map(({ spanId }) => spanId));
    expect(spans.filter(({ parentSpanId }) => parentSpanId !== "" && !ids.has(parentSpanId))).toEqual([]);
    expect(points.findLast(({ metric }) => metric === "ambit.runs")).toMatchObject({ value: runs });
    expect(logs.filter(({ body }) => body === "a run has ended")).toHaveLength(runs);
    expect(server.log()).not.toContain("is lost");
  });

  test("has refused requests, calls that ask, and the run's log lines", async () => {
    const received = await receiver();
    const server = await serve(variables(received));

    // A refused request: from the headers, and from a body that can't be read otherwise.
    const bad = { ...demo("say x"), harness: 7 };
    expect((await server.post("/run", bad, { traceparent: traceparent("1") })).status).toBe(400);
    const inBody = { ...bad, context: { propagation: { traceparent: traceparent("2") } } };
    expect((await server.post("/run", inBody)).status).toBe(400);
    for (const digit of ["1", "2"])
      expect(await rootOf(received, hex(digit, 32))).toMatchObject({
        parentSpanId: hex(digit, 16),
        status: { code: "STATUS_CODE_ERROR" },
        attributes: { "error.type": "request_invalid", "http.response.status_code": "400" },
      });

    // A live answer: one span for the call, with the wait in it.
    const runId = "asked-live";
    const live = await asking(server, { runId, interactions: { waitMs: 60_000 } }, "3");
    const answer = `/runs/${runId}/interactions/${live.id}`;
    expect((await server.post(answer, { approved: true })).status).toBe(200);
    expect(await resultOf(live.records)).toMatchObject({ ok: true, traceId: hex("3", 32) });
    const root = await rootOf(received, hex("3", 32));
    const below = received.spans.filter(({ traceId }) => traceId === root.traceId);
    const calls = below.filter(({ name }) => name.startsWith("execute_tool"));
    expect(calls).toHaveLength(1);
    expect(calls[0]?.name).not.toBe("execute_tool");
    expect(below.find(({ name }) => name === "wait_for_user user_approval")).toMatchObject({
      parentSpanId: calls[0]?.spanId,
      attributes: { "ambit.interaction.approved": true },
    });

    // Each line of a run names its trace.
    const linesOf = () => received.logs.filter(({ attributes }) => attributes.runId === runId);
    await expect
      .poll(() => linesOf().map(({ body }) => body), { timeout: 60_000 })
      .toEqual(expect.arrayContaining(["a run begins", "a run has ended"]));
    for (const { traceId, spanId } of linesOf()) {
      expect(traceId).toBe(root.traceId);
      expect(below.map((span) => span.spanId)).toContain(spanId);
    }
  });

  test.for([
    ["a store", false],
    ["the memory", true],
  ] as const)(
    "links a run that uses answers to the one that paused for them, with %s",
    async ([, isInMemory]) => {
      const received = await receiver();
      const server = await serve(variables(received), isInMemory ? await withoutStore() : keptEvidence);
      const paused = await asking(server, { runId: "paused", sessionId: "linked" }, "4");
      expect(await resultOf(paused.records)).toMatchObject({ stopReason: "paused" });
      expect((await server.post(`/runs/paused/interactions/${paused.id}`, { approved: true })).status).toBe(
        200,
      );
      const { messages: _none, ...next } = {
        ...demo(),
        permissions: { default: "ask" },
        sessionId: "linked",
      };
      const resumed = await server.post("/run", next, { traceparent: traceparent("5") });
      expect(await bodyOf(resumed)).toMatchObject({ ok: true });
      const { traceId, spanId } = await rootOf(received, hex("4", 32));
      expect((await rootOf(received, hex("5", 32))).links).toEqual([{ traceId, spanId }]);
    },
  );

  test("has a run whose server was killed, under the span that the caller knows", async () => {
    const received = await receiver();
    const store = join(await emptyFolder(), "runs.sqlite");
    const first = await serve(variables(received, { AMBIT_SQLITE_FILE: store, AMBIT_CONCURRENT_RUNS: "2" }));
    const headers = { ...ndjson, traceparent: traceparent("6") };
    const otlp = { endpoint: received.url, headers: { authorization: "of-the-caller-4712" } };
    const request = { ...demo("say begun", "sleep 60000"), telemetry: { exporters: { otlp } } };
    const records = recordsOf(await first.post("/run", request, headers));
    await readUntil(records, isMessage("begun"));
    // Another waits in the queue, until a place is free.
    const blocking = { runId: "blocking", ...demo("say begun", "sleep 60000") };
    await readUntil(recordsOf(await first.post("/run", blocking, ndjson)), isMessage("begun"));
    const detached = { runId: "detached", ...demo("say begun", "sleep 60000") };
    const later = { prefer: "respond-async", traceparent: traceparent("7") };
    expect(await bodyOf<object>(await first.post("/run", detached, later))).toMatchObject({
      state: "queued",
    });
    await first.post("/runs/blocking/cancel", "");
    const events = recordsOf(await fetch(`${first.url}/runs/detached/events`, { headers: ndjson }));
    await readUntil(events, isMessage("begun"));
    // The collector is away while the server is killed and starts again.
    await received.stop();
    first.process.kill("SIGKILL");
    await first.exit;
    // The control: the store has the run's events.
    const stored = await Promise.all([store, `${store}-wal`].map((file) => readFile(file, "latin1")));
    expect(stored.join("")).toContain("begun");
    expect(stored.join("")).not.toContain("of-the-caller-4712");
    const { port } = new URL(first.url);
    await serve(variables(received, { AMBIT_SQLITE_FILE: store, AMBIT_PORT: port }));
    const sent = received.headers.length;
    await received.listen();
    const root = await rootOf(received, hex("6", 32));
    expect(root).toMatchObject({
      name: "invoke_agent demo",
      parentSpanId: hex("6", 16),
      status: { code: "STATUS_CODE_ERROR" },
      attributes: { "error.type": "runner_lost", "gen_ai.agent.name": "demo" },
    });
    expect(await rootOf(received, hex("7", 32))).toMatchObject({
      parentSpanId: hex("7", 16),
      attributes: { "error.type": "runner_lost", "ambit.run.id": "detached" },
    });
    const credentials = received.headers.slice(sent).map(({ authorization }) => authorization);
    expect(credentials).toEqual(expect.arrayContaining(["of-the-caller-4712", secret]));
    // What the first server had sent lies below it.
    const children = received.spans.filter(
      ({ traceId, spanId }) => traceId === root.traceId && spanId !== root.spanId,
    );
    for (const { parentSpanId } of children) expect(parentSpanId).toBe(root.spanId);
  });

  test("is nothing that a sandbox sees", async () => {
    const received = await receiver();
    const server = await serve(variables(received));
    const result = await bodyOf(await server.post("/run", demo("run env")));
    const text = JSON.stringify(result);
    // The control: these are the variables of the command.
    expect(text).toContain("PATH=");
    expect(text).not.toContain("OTEL_");
    expect(text).not.toContain(secret);
  });
});
