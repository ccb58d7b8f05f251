import type { Registrar, RunnerState, RunObserver } from "@ambit/core/plugin";
import { describe, expect, it, vi } from "vitest";
import plugin, { configSchema } from "../src/index.js";
import { logInto, observed, playShort } from "./support/runs.js";
import { collector, receiver, type Target } from "./support/targets.js";

const program = process.env.AMBIT_OTEL_COLLECTOR;

/** The plugin as a server loads it with these variables. */
function load(
  variables: Readonly<Record<string, string>>,
  lines: unknown[] = [],
  config: object = {},
): RunObserver[] {
  vi.unstubAllEnvs();
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  const observers: RunObserver[] = [];
  const registrar: Registrar = {
    add: (_kind, offer) => {
      if ("observe" in offer) observers.push(offer);
    },
    log: logInto(lines),
    hasTenants: false,
    secret: () => {},
  };
  plugin.register(registrar, configSchema.parse(config));
  return observers;
}

const close = (observers: readonly RunObserver[]) =>
  Promise.all(observers.map((observer) => observer.close?.(AbortSignal.timeout(30_000))));

const state: RunnerState = { runs: 3, sessions: 4, processes: 5, prewarmed: 0, probes: [] };
const caller = { traceId: "a".repeat(32), spanId: "b".repeat(16) };

const protocols = ["http/protobuf", "http/json", "grpc"] as const;
const targets: readonly (readonly [string, () => Promise<Target>])[] = [
  ["a receiver", receiver],
  ...(program === undefined ? [] : [["the official collector", () => collector(program)] as const]),
];
const cases = targets.flatMap(([name, start]) => protocols.map((protocol) => ({ name, protocol, start })));

describe("OTLP by OpenTelemetry's own variables", () => {
  it.for(cases)("reaches $name over $protocol: traces, metrics and logs", async ({ protocol, start }) => {
    const { http, grpc, received } = await start();
    const observers = load({
      OTEL_EXPORTER_OTLP_ENDPOINT: protocol === "grpc" ? grpc : http,
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_HEADERS: "x-operator=of%20ours",
      OTEL_SERVICE_NAME: "runners",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    });
    for (const observer of observers) {
      observer.watch?.(async () => state);
      const fields = { runId: "run-1", ...caller, ms: 12, nested: { deep: true } };
      observer.logged?.({ level: "warn", at: 1_700_000_000_000, message: "a run has ended", fields });
    }
    playShort(observers, { ...observed({}), parent: { ...caller, flags: 1 } });
    await close(observers);

    const { spans, points, logs } = received;
    expect(spans.map(({ name }) => name).toSorted()).toEqual([
      "execute_tool look_up",
      "invoke_agent demo",
      "run.close",
      "turn",
    ]);
    const [root, turn, call] = ["invoke_agent demo", "turn", "execute_tool look_up"].map((name) =>
      received.named(name),
    );
    expect(root).toMatchObject({ traceId: caller.traceId, parentSpanId: caller.spanId });
    expect(turn).toMatchObject({ traceId: caller.traceId, parentSpanId: root?.spanId });
    expect(call).toMatchObject({ traceId: caller.traceId, parentSpanId: turn?.spanId });
    expect(root?.scope).toMatchObject({
      name: "ambit",
      schemaUrl: "https://opentelemetry.io/schemas/1.41.0",
      resourceSchemaUrl: "https://opentelemetry.io/schemas/1.41.0",
    });
    expect(root?.resource).toMatchObject({
      "service.name": "runners",
      "service.instance.id": expect.stringMatching(/^[0-9a-f-]{36}$/),
      "deployment.environment.name": "test",
      "telemetry.sdk.language": "nodejs",
    });

    const value = (metric: string) => points.find((point) => point.metric === metric);
    expect(value("ambit.runs")).toMatchObject({
      value: 1,
      attributes: { outcome: "ok", harness: "demo", sandbox: "local" },
    });
    expect(value("ambit.run.duration")).toMatchObject({ kind: "histogram", unit: "s", value: 1 });
    expect(value("ambit.sessions")).toMatchObject({ kind: "gauge", value: 4 });
    expect(value("ambit.tokens")?.resource).toEqual(root?.resource);

    expect(logs).toHaveLength(1);
    expect(logs[0]).toMatchObject({
      body: "a run has ended",
      severity: "WARN",
      ...caller,
      attributes: { runId: "run-1", nested: '{"deep":true}' },
      resource: root?.resource,
    });
  });

  it.for(protocols)("go to no endpoint of a request, nor do their headers: %s", async (protocol) => {
    const { http, grpc, received: mine } = await receiver();
    const { http: theirs, received } = await receiver();
    const observers = load({
      OTEL_EXPORTER_OTLP_ENDPOINT: protocol === "grpc" ? grpc : http,
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_HEADERS: "x-operator=secret",
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "x-operator-traces=secret",
    });
    const otlp = { endpoint: theirs, headers: { authorization: "ApiKey k" } };
    playShort(observers, observed({ telemetry: { exporters: { otlp } } }));
    await close(observers);
    expect(received.spans).toHaveLength(4);
    expect(received.headers.map((headers) => headers["x-operator"] ?? headers["x-operator-traces"])).toEqual([
      undefined,
    ]);
    expect(mine.spans).toEqual([]);
    // The control: what isn't the caller's goes to the operator with them.
    const names = mine.headers.map((headers) => headers["x-operator"]);
    const metadata = mine.metadata.flatMap((one) => one.get("x-operator"));
    expect([...names, ...metadata]).toContain("secret");
  });

  it.for(protocols)("lose nothing in a short outage: %s", async (protocol) => {
    const { http, grpc, received } = await receiver();
    const lines: unknown[] = [];
    const observers = load(
      {
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: protocol === "grpc" ? grpc : `${http}/v1/traces`,
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_BSP_SCHEDULE_DELAY: "10",
      },
      lines,
    );
    received.status = 503;
    playShort(observers, observed({}));
    const tries = () => received.paths.length + received.metadata.length;
    await expect.poll(tries, { timeout: 20_000 }).toBeGreaterThan(0);
    received.status = 200;
    await close(observers);
    expect(received.spans).toHaveLength(4);
    expect(lines).toEqual([]);
  });

  it.for(protocols)("account for every span of a long outage and a full queue: %s", async (protocol) => {
    const { http, grpc, received } = await receiver();
    const lines: unknown[] = [];
    const observers = load(
      {
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: protocol === "grpc" ? grpc : `${http}/v1/traces`,
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_EXPORTER_OTLP_TIMEOUT: "2000",
        OTEL_BSP_SCHEDULE_DELAY: "10",
        OTEL_BSP_MAX_QUEUE_SIZE: "100",
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "50",
      },
      lines,
    );
    const runs = 50;
    await received.stop();
    // 200 spans, of which the queue holds 100.
    for (let run = 0; run < runs; run += 1) playShort(observers, observed({}));
    await expect.poll(() => JSON.stringify(lines), { timeout: 30_000 }).toContain("is lost");
    await received.listen();
    for (let run = 0; run < runs; run += 1) playShort(observers, observed({}));
    await close(observers);
    const metrics = (await observers[0]?.scrape?.(state)) ?? "";
    const figures = [...metrics.matchAll(/signal="traces"(?:,reason="(\w+)")?} (\d+)/g)];
    const all = figures.reduce((sum, [, , count]) => sum + Number(count), 0);
    expect(all).toBe(2 * runs * 4);
    expect(metrics).toContain(`ambit_telemetry_exported_total{signal="traces"} ${received.spans.length}\n`);
    expect(received.spans.length).toBeLessThan(all);
    // The log's sums are the counters' values.
    const lost = lines.flatMap((line) => (JSON.stringify(line).match(/"lost":{[^}]*}/) ?? []).map(String));
    const logged = lost.flatMap((text) => [...text.matchAll(/:(\d+)/g)].map(([, count]) => Number(count)));
    expect(logged.reduce((sum, count) => sum + count, 0)).toBe(all - received.spans.length);
  });

  it("are left out where the SDK is disabled, for a request's endpoint too", async () => {
    const { http, received } = await receiver();
    const observers = load({ OTEL_SDK_DISABLED: "true", OTEL_EXPORTER_OTLP_ENDPOINT: http });
    playShort(observers, observed({ telemetry: { exporters: { otlp: { endpoint: http } } } }));
    await close(observers);
    expect(received.paths).toEqual([]);
    expect(observers).toHaveLength(1);
  });

  it("don't replace an endpoint of the configuration, which has traces alone", async () => {
    const { http, received } = await receiver();
    const { http: configured, received: mine } = await receiver();
    const observers = load({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${http}/v1/traces` }, [], {
      endpoint: configured,
    });
    playShort(observers, observed({}));
    await close(observers);
    expect(mine.spans).toHaveLength(4);
    expect(received.paths).toEqual([]);
  });

  it("decide what is sampled, and pass the decision on", async () => {
    const { http, received } = await receiver();
    const observers = load({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${http}/v1/traces`,
      OTEL_TRACES_SAMPLER: "always_off",
    });
    const run = observers[0]?.observe({ ...observed({}), parent: { ...caller, flags: 1 } });
    expect(run?.traceparent?.()).toMatch(/-00$/);
    playShort(observers, observed({}));
    await close(observers);
    expect(received.spans).toEqual([]);
  });
});
