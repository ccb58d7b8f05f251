import { join } from "node:path";
import { OtlpReceiver, type ReceivedSpan } from "@ambit/otlp-receiver";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  bodyOf,
  demo,
  emptyFolder,
  ndjson,
  readUntil,
  recordsOf,
  resultOf,
  type Server,
  serve,
} from "./support/ambit.js";

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

  test("has a run whose server was killed, and starts again while the collector is away", async () => {
    const received = await receiver();
    const store = join(await emptyFolder(), "runs.sqlite");
    const first = await serve(variables(received, { AMBIT_SQLITE_FILE: store }));
    const headers = { ...ndjson, traceparent: traceparent("6") };
    const records = recordsOf(await first.post("/run", demo("say begun", "sleep 60000"), headers));
    await readUntil(records, (record) => JSON.stringify(record).includes("begun"));
    // The collector is away while the server is killed and starts again.
    await received.stop();
    first.process.kill("SIGKILL");
    await first.exit;
    const { port } = new URL(first.url);
    await serve(variables(received, { AMBIT_SQLITE_FILE: store, AMBIT_PORT: port }));
    await received.listen();
    const lost = () => received.spans.filter(({ attributes }) => attributes["error.type"] === "runner_lost");
    await expect.poll(lost, { timeout: 60_000 }).toHaveLength(1);
    expect(lost()[0]).toMatchObject({
      name: "invoke_agent demo",
      status: { code: "STATUS_CODE_ERROR" },
      attributes: { "gen_ai.agent.name": "demo" },
    });
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
