import { ROOT_CONTEXT } from "@opentelemetry/api";
import { ParentBasedSampler, SamplingDecision, TraceIdRatioBasedSampler } from "@opentelemetry/sdk-trace";
import { describe, expect, it } from "vitest";
import { readEnvironment } from "../src/index.js";
import { isSampled } from "../src/observer.js";

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "https://user:secret@collector:4318/base" };
const everything = (protocol: string, origin: string) => ({
  traces: { protocol, origin },
  metrics: { protocol, origin },
  logs: { protocol, origin },
});

describe("OpenTelemetry's variables", () => {
  it.for([
    ["none", {}, {}],
    ["an endpoint for all", endpoint, everything("http/protobuf", "https://collector:4318")],
    ["an empty one", { OTEL_EXPORTER_OTLP_ENDPOINT: " " }, {}],
    [
      "an endpoint of one signal",
      { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: "http://logs/v1/logs" },
      { logs: { protocol: "http/protobuf", origin: "http://logs" } },
    ],
    [
      "a protocol for all, and one of a signal",
      { ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json", OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "GRPC" },
      {
        ...everything("http/json", "https://collector:4318"),
        traces: { protocol: "grpc", origin: "https://collector:4318" },
      },
    ],
    [
      "signals left out",
      { ...endpoint, OTEL_METRICS_EXPORTER: "none", OTEL_LOGS_EXPORTER: "none" },
      {
        traces: { protocol: "http/protobuf", origin: "https://collector:4318" },
      },
    ],
    [
      "one asked for without an endpoint",
      { OTEL_TRACES_EXPORTER: "otlp" },
      {
        traces: { protocol: "http/protobuf", origin: "http://localhost:4318" },
      },
    ],
    [
      "gRPC without a scheme",
      { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "collector:4317", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
      {
        traces: { protocol: "grpc", origin: "grpc://collector:4317" },
      },
    ],
    ["the SDK disabled", { ...endpoint, OTEL_SDK_DISABLED: "True" }, {}],
  ] as const)("choose what is exported: %s", ([, variables, exported]) => {
    expect(readEnvironment(variables).exported).toEqual(exported);
    expect(readEnvironment(variables).warnings).toEqual([]);
  });

  it.for<readonly [Readonly<Record<string, string>>, string]>([
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: "http/xml" }, "OTEL_EXPORTER_OTLP_PROTOCOL is 'http/xml'"],
    [{ OTEL_TRACES_EXPORTER: "otlp,zipkin" }, "OTEL_TRACES_EXPORTER names zipkin"],
    [{ OTEL_TRACES_SAMPLER: "sometimes" }, "OTEL_TRACES_SAMPLER is 'sometimes'"],
    [{ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" }, "OTEL_TRACES_SAMPLER_ARG is '2'"],
    [{ OTEL_BSP_MAX_QUEUE_SIZE: "0" }, "OTEL_BSP_MAX_QUEUE_SIZE is '0'"],
    [{ OTEL_METRIC_EXPORT_INTERVAL: "soon" }, "OTEL_METRIC_EXPORT_INTERVAL is 'soon'"],
    [{ OTEL_METRIC_EXPORT_INTERVAL: "99999999999" }, "OTEL_METRIC_EXPORT_INTERVAL is '99999999999'"],
  ])("warn of an unusable value: %o", ([variables, warning]) => {
    expect(readEnvironment(variables).warnings.join()).toContain(warning);
  });

  it("set the queues' limits and the interval of metrics", () => {
    const { spans, logs, metrics } = readEnvironment({
      OTEL_BSP_MAX_QUEUE_SIZE: "100",
      OTEL_BSP_SCHEDULE_DELAY: "5",
      OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: "7",
      OTEL_METRIC_EXPORT_INTERVAL: "1000",
    });
    expect(spans).toMatchObject({ maxQueueSize: 100, maxExportBatchSize: 100, scheduledDelayMillis: 5 });
    expect(logs).toMatchObject({ maxQueueSize: 2_048, maxExportBatchSize: 7 });
    expect(metrics).toEqual({ intervalMs: 1_000, timeoutMs: 1_000 });
  });
});

describe("the sampler in OpenTelemetry's variables", () => {
  it.for([
    ["parentbased_always_on", undefined, [true, false, true]],
    ["parentbased_always_off", undefined, [true, false, false]],
    ["always_on", undefined, [true, true, true]],
    ["always_off", undefined, [false, false, false]],
    ["parentbased_traceidratio", "0", [true, false, false]],
    ["traceidratio", "1", [true, true, true]],
  ] as const)("%s %s decides for a sampled parent, one that isn't, and none", ([name, ratio, expected]) => {
    const { sampling } = readEnvironment({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio });
    const decided = [1, 0, undefined].map((flags) => isSampled(sampling, "a".repeat(32), flags));
    expect(decided).toEqual(expected);
  });

  it("decides by the trace id as the SDK does", () => {
    const { sampling } = readEnvironment({
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.3",
    });
    const theirs = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(0.3) });
    const ids = Array.from({ length: 500 }, (_, at) =>
      ((BigInt(at + 1) * 0x9e3779b97f4a7c15f39cc0605cedc835n) % 2n ** 128n).toString(16).padStart(32, "0"),
    );
    const ours = ids.filter((id) => isSampled(sampling, id, undefined));
    const expected = ids.filter(
      (id) =>
        theirs.shouldSample(ROOT_CONTEXT, id, "", 0, {}, []).decision === SamplingDecision.RECORD_AND_SAMPLED,
    );
    expect(ours).toEqual(expected);
    expect(ours.length).toBeGreaterThan(100);
  });
});
