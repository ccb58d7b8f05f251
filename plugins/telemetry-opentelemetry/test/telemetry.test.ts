import type { AgentEvent, RunObservation, RunResult } from "@ambit/core/plugin";
import { OtlpReceiver as Collector } from "@ambit/otlp-receiver";
import { describe, expect, it } from "vitest";
import { configSchema, readEnvironment, Telemetry, TelemetryObserver } from "../src/index.js";
import { logInto, observed, result } from "./support/runs.js";

const caller = { traceId: "a".repeat(32), spanId: "b".repeat(16) };

const events: readonly AgentEvent[] = [
  { type: "tool_call", id: "call-1", name: "look_up", input: { city: "Bern" } },
  { type: "boundary_decision", target: "example.com:443", allowed: false, reason: "not listed", count: 2 },
  { type: "tool_result", id: "call-1", output: "sunny" },
  { type: "tool_call", id: "call-2", name: "remove" },
  { type: "tool_result", id: "call-2", output: "no", isError: true, denied: true },
  { type: "tool_call", id: "call-3", name: "wait" },
];
function play(run: RunObservation | undefined, end: RunResult = result): void {
  if (run === undefined) throw new Error("not observed");
  run.entered?.("opening");
  run.entered?.("starting");
  run.entered?.("streaming");
  const exchange = run.modelCalled?.("m-1");
  exchange?.used({ model: "m-1", input: 10, cached: 2, cacheWritten: 1, output: 5, reasoning: 3 });
  exchange?.ended();
  run.modelCalled?.("m-2")?.ended({ status: 529, retryable: true, message: "overloaded" });
  for (const event of events) run.happened?.(event);
  run.entered?.("closing");
  run.ended?.(end);
}

const observer = (config: object, log: unknown[] = []) =>
  new TelemetryObserver(new Telemetry(configSchema.parse(config), readEnvironment({}), logInto(log)));
const never = new AbortController().signal;

describe("the trace of a run at a collector", () => {
  it("continues the caller's, and has stages, tools, model requests and refusals", async () => {
    await using collector = await Collector.start();
    const telemetry = observer({ endpoint: collector.url, headers: { authorization: "Bearer t" } });
    const run = telemetry.observe({
      ...observed({ sessionId: "s-1", context: { propagation: { tracestate: "vendor=1" } } }),
      parent: { ...caller, flags: 1 },
    });
    expect(run?.traceId).toBe(caller.traceId);
    const sent = run?.traceparent?.({ id: "call-1", name: "look_up" });
    play(run);
    await telemetry.close(never);

    expect(collector.paths).toEqual(["/v1/traces"]);
    expect(collector.headers[0]).toMatchObject({ authorization: "Bearer t" });
    expect(collector.spans[0]?.resource).toMatchObject({
      "service.name": "ambit",
      "service.instance.id": expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    const root = collector.named("invoke_agent demo");
    expect(root).toMatchObject({ traceId: caller.traceId, parentSpanId: caller.spanId, status: {} });
    for (const { traceState } of collector.spans) expect(traceState).toBe("vendor=1");
    expect(root.attributes).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.conversation.id": "s-1",
      "gen_ai.usage.input_tokens": "10",
      "gen_ai.usage.output_tokens": "5",
      "gen_ai.usage.reasoning.output_tokens": "3",
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.request.model": "m-1",
      "gen_ai.response.model": "m-1",
      "ambit.usage.cost_usd": 0.25,
      "ambit.guarantees": ["network.deny"],
    });
    for (const name of ["sandbox.open", "agent.start", "turn", "run.close"])
      expect(collector.named(name)).toMatchObject({ traceId: caller.traceId, parentSpanId: root.spanId });
    const turn = collector.named("turn");
    expect(turn.events).toMatchObject([
      { name: "ambit.boundary.decision", attributes: { "ambit.decision.target": "example.com:443" } },
    ]);
    expect(collector.named("chat m-1")).toMatchObject({
      kind: "SPAN_KIND_CLIENT",
      parentSpanId: turn.spanId,
      attributes: {
        "gen_ai.usage.cache_read.input_tokens": "2",
        "gen_ai.usage.cache_creation.input_tokens": "1",
        "gen_ai.usage.reasoning.output_tokens": "3",
      },
    });
    expect(collector.named("chat m-2")).toMatchObject({
      status: { code: "STATUS_CODE_ERROR", message: "overloaded" },
      attributes: { "error.type": "529" },
    });
    expect(collector.named("execute_tool look_up")).toMatchObject({ status: {} });
    expect(collector.named("execute_tool remove").attributes).toMatchObject({
      "error.type": "permission_denied",
    });
    expect(collector.named("execute_tool wait").attributes).toMatchObject({ "ambit.interrupted": true });
    // What the tool sent on is the tool's own span.
    expect(sent).toBe(`00-${caller.traceId}-${collector.named("execute_tool look_up").spanId}-01`);
    expect(collector.spans).toHaveLength(10);
  });

  it("contains content only if the request allows it, and never a credential", async () => {
    await using collector = await Collector.start();
    const telemetry = observer({ endpoint: collector.url });
    play(telemetry.observe(observed({ sessionId: "without" })));
    const capture = { content: { enabled: true } };
    play(telemetry.observe(observed({ sessionId: "with", telemetry: { capture } })));
    await telemetry.close(never);
    const roots = collector.spans.filter(({ name }) => name.startsWith("invoke_agent"));
    const of = (id: string) =>
      roots.find((one) => one.attributes["gen_ai.conversation.id"] === id)?.attributes;
    expect(JSON.stringify(of("without"))).not.toMatch(/sunny|redacted|say/);
    expect(of("with")?.["gen_ai.output.messages"]).toBe(
      '[{"role":"assistant","parts":[{"type":"text","content":"It is sunny."}],"finish_reason":"stop"}]',
    );
    expect(of("with")?.["gen_ai.input.messages"]).toContain("say [redacted]");
    expect(JSON.stringify(collector.spans)).not.toContain("sk-secret");
    const tools = collector.spans.filter(({ name }) => name === "execute_tool look_up");
    expect(tools.map((one) => one.attributes["gen_ai.tool.call.arguments"]).toSorted()).toEqual([
      '{"city":"Bern"}',
      undefined,
    ]);
  });

  it("goes to the request's endpoint with its headers, and none of the operator's", async () => {
    await using mine = await Collector.start();
    await using theirs = await Collector.start();
    const telemetry = observer({ endpoint: mine.url, headers: { "x-operator": "1" } });
    const otlp = { endpoint: `${theirs.url}/otlp/v1/traces`, headers: { authorization: "ApiKey k" } };
    play(telemetry.observe(observed({ telemetry: { exporters: { otlp } } })));
    await telemetry.close(never);
    expect(mine.spans).toEqual([]);
    expect(theirs.paths).toEqual(["/otlp/v1/traces"]);
    expect(theirs.headers[0]).toMatchObject({ authorization: "ApiKey k" });
    expect(theirs.headers[0]).not.toHaveProperty("x-operator");
  });

  it.for(["127.0.0.1", "localhost"])(
    "reaches no private address where the operator refuses them: %s",
    async (host) => {
      await using collector = await Collector.start();
      const otlp = { endpoint: `http://${host}:${collector.port}` };
      const request = { telemetry: { exporters: { otlp } } };
      // The control: by default it does.
      const control = observer({});
      play(control.observe(observed(request)));
      await control.close(never);
      expect(collector.spans.length).toBeGreaterThan(0);
      const before = collector.spans.length;
      const log: unknown[] = [];
      const telemetry = observer({ privateHosts: "refuse" }, log);
      play(telemetry.observe(observed(request, log)));
      await telemetry.close(AbortSignal.timeout(2_000));
      expect(collector.spans).toHaveLength(before);
      expect(JSON.stringify(log)).toContain("export");
    },
  );

  it("that the caller doesn't sample is passed on but not exported", async () => {
    await using collector = await Collector.start();
    const telemetry = observer({ endpoint: collector.url });
    const run = telemetry.observe({ ...observed({}), parent: { ...caller, flags: 0 } });
    expect(run?.traceparent?.()).toMatch(/-00$/);
    play(run);
    await telemetry.close(never);
    expect(collector.spans).toEqual([]);
  });

  it("is lost while the collector is down, which is logged once, and again when it is back", async () => {
    await using collector = await Collector.start();
    collector.status = 400;
    const log: unknown[] = [];
    const telemetry = observer({ endpoint: collector.url }, log);
    play(telemetry.observe(observed({}, log)));
    await expect.poll(() => collector.paths.length, { timeout: 5_000 }).toBe(1);
    play(telemetry.observe(observed({}, log)));
    await expect.poll(() => collector.paths.length, { timeout: 5_000 }).toBe(2);
    collector.status = 200;
    play(telemetry.observe(observed({}, log)));
    await telemetry.close(never);
    const said = log.map((line) => JSON.stringify(line)).filter((line) => line.includes("export"));
    expect(said).toHaveLength(2);
    expect(said[0]).toContain("can't be exported");
    expect(said[1]).toContain("exported again");
    // The outage's count.
    expect(said[1]).toContain('"lost":{"export_failed":20}');
  });

  it.for([
    // partial_success { rejected_spans: 3, error_message: "no" }
    ["rejected", Uint8Array.of(0x0a, 6, 0x08, 3, 0x12, 2, 0x6e, 0x6f), 3],
    ["not_a_collector", "<!doctype html><title>Log in</title>", 10],
    ["not_a_collector", "\n<html><title>Log in</title>", 10],
  ] as const)("is counted as lost where a collector answers 200: %s", async ([reason, answer, lost]) => {
    await using collector = await Collector.start();
    collector.answer = answer;
    const log: unknown[] = [];
    const telemetry = observer({ endpoint: collector.url }, log);
    play(telemetry.observe(observed({}, log)));
    await telemetry.close(never);
    expect(await telemetry.scrape()).toContain(
      `telemetry_lost_total{signal="traces",reason="${reason}"} ${lost}\n`,
    );
    expect(await telemetry.scrape()).toContain(`telemetry_exported_total{signal="traces"} ${10 - lost}\n`);
    expect(JSON.stringify(log)).toContain(`{"${reason}":${lost}}`);
  });

  it("is accounted for whole: each span arrives, or is counted by the reason of its loss", async () => {
    await using collector = await Collector.start();
    const log: unknown[] = [];
    const telemetry = observer({ endpoint: collector.url }, log);
    const runs = 4;
    for (let count = 0; count < runs; count += 1) {
      const run = telemetry.observe(observed({}, log));
      for (let id = 0; id < 999; id += 1) {
        run?.happened?.({ type: "tool_call", id: `${id}`, name: "again" });
        run?.happened?.({ type: "tool_result", id: `${id}`, output: "" });
      }
      run?.ended?.(result);
    }
    await telemetry.close(never);
    const metrics = await telemetry.scrape();
    const lost = runs * 1_000 - collector.spans.length;
    expect(lost).toBeGreaterThan(0);
    expect(metrics).toContain(`{signal="traces",reason="queue_full"} ${lost}\n`);
    expect(metrics).toContain(`telemetry_exported_total{signal="traces"} ${collector.spans.length}\n`);
    expect(JSON.stringify(log)).toContain(`"lost":{"queue_full":${lost}}`);
  });

  it("that can't be sent before the server ends is counted", async () => {
    await using collector = await Collector.start();
    collector.status = 503;
    const log: unknown[] = [];
    const telemetry = observer({ endpoint: collector.url }, log);
    play(telemetry.observe(observed({}, log)));
    await telemetry.close(AbortSignal.timeout(200));
    expect(await telemetry.scrape()).toContain('{signal="traces",reason="shutdown"} 10\n');
    expect(JSON.stringify(log)).toContain("the last telemetry was lost");
  });

  it("has a span for a request that was refused, below its caller's, and none of an unknown caller's", async () => {
    await using collector = await Collector.start();
    const telemetry = observer({ endpoint: collector.url });
    const begunAt = Date.now() - 50;
    const trace = { ...caller, flags: 1, tracestate: "vendor=1" };
    telemetry.refused({
      code: "boundary_refused",
      capabilities: ["network.deny"],
      status: 422,
      begunAt,
      trace,
    });
    telemetry.refused({ code: "at_capacity", capabilities: [], status: 429 });
    telemetry.refused({ code: "unauthorized", capabilities: [], status: 401 });
    await telemetry.close(never);
    expect(collector.spans).toHaveLength(2);
    const [first, second] = collector.spans;
    expect(first).toMatchObject({
      name: "invoke_agent",
      traceId: caller.traceId,
      parentSpanId: caller.spanId,
      traceState: "vendor=1",
      startTimeUnixNano: `${begunAt}000000`,
      status: { code: "STATUS_CODE_ERROR" },
      attributes: {
        "error.type": "boundary_refused",
        "http.response.status_code": "422",
        "ambit.refused.capabilities": ["network.deny"],
      },
    });
    expect(second).toMatchObject({ parentSpanId: "", attributes: { "error.type": "at_capacity" } });
  });

  it("has a span for a run whose process died, from the process that ends it", async () => {
    await using collector = await Collector.start();
    const telemetry = observer({ endpoint: collector.url });
    telemetry.lost({ runId: "r-1", harness: "demo", sandbox: "local", begunAt: 1_700_000_000_000 });
    await telemetry.close(never);
    expect(collector.named("invoke_agent demo")).toMatchObject({
      startTimeUnixNano: "1700000000000000000",
      status: { code: "STATUS_CODE_ERROR" },
      attributes: { "error.type": "runner_lost", "ambit.run.id": "r-1" },
    });
  });

  it("ends the span of such a run in its own trace, at the destination that its caller named", async () => {
    await using operators = await Collector.start();
    await using callers = await Collector.start();
    const allowed = { endpoint: operators.url, requestEndpoints: "allow" };
    const endpoint = { endpoint: callers.url, headers: { authorization: "Bearer of-the-caller" } };
    const request = { telemetry: { exporters: { otlp: endpoint } } };
    const died = observer(allowed).observe({ ...observed(request), parent: { ...caller, flags: 1 } });
    const known = died?.traceparent?.();
    const lost = {
      runId: "r-1",
      harness: "demo",
      sandbox: "local",
      begunAt: 1,
      recovery: died?.recovery?.(),
    };
    const next = observer(allowed);
    next.lost(lost);
    await next.close(never);
    expect(operators.spans).toEqual([]);
    expect(callers.headers[0]).toMatchObject({ authorization: "Bearer of-the-caller" });
    const span = callers.named("invoke_agent demo");
    expect(span).toMatchObject({ traceId: caller.traceId, parentSpanId: caller.spanId });
    expect(known).toBe(`00-${span.traceId}-${span.spanId}-01`);
    // A server that ignores such destinations, and a recovery that can't be read.
    for (const [settings, recovery] of [
      [{ ...allowed, requestEndpoints: "ignore" }, lost.recovery],
      [allowed, "{"],
    ] as const) {
      const other = observer(settings);
      other.lost({ ...lost, recovery });
      await other.close(never);
    }
    expect(operators.spans.map(({ parentSpanId }) => parentSpanId)).toEqual([caller.spanId, ""]);
    expect(callers.spans).toHaveLength(1);
  });

  it("keeps half of the queue free of refusals", async () => {
    await using collector = await Collector.start();
    const telemetry = observer({ endpoint: collector.url });
    for (let count = 0; count < 3_000; count += 1)
      telemetry.refused({ code: "at_capacity", capabilities: [], status: 429 });
    play(telemetry.observe(observed({})));
    await telemetry.close(never);
    // The first batch of 512 was taken at once.
    expect(collector.spans.filter(({ name }) => name === "invoke_agent")).toHaveLength(1_024 + 512);
    expect(collector.named("invoke_agent demo")).toBeDefined();
  });

  it("isn't recorded without an endpoint", () => {
    expect(observer({}).observe(observed({}))).toBeUndefined();
  });

  it("counts the omitted spans of a run with very many calls", async () => {
    await using collector = await Collector.start();
    const telemetry = observer({ endpoint: collector.url });
    const run = telemetry.observe(observed({}));
    for (let id = 0; id < 1_200; id += 1) {
      run?.happened?.({ type: "tool_call", id: `${id}`, name: "again" });
      run?.happened?.({ type: "tool_result", id: `${id}`, output: "" });
    }
    run?.ended?.({
      ...result,
      ok: false,
      error: "It broke.",
      failure: { code: "internal", retryable: false },
    });
    await telemetry.close(never);
    const root = collector.named("invoke_agent demo");
    expect(root.attributes).toMatchObject({ "ambit.spans.dropped": "200", "error.type": "internal" });
    expect(root.status).toMatchObject({ code: "STATUS_CODE_ERROR", message: "It broke." });
    expect(collector.spans).toHaveLength(1_001);
  });
});
