import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runRequestSchema } from "@ambit/core/contract";
import type { ObservedRun, RunnerState, RunResult } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { configSchema, PrometheusObserver } from "../src/index.js";

const answerSchema = z.object({
  data: z.object({ result: z.array(z.object({ value: z.tuple([z.number(), z.string()]) })) }),
});
const dashboardSchema = z.object({
  panels: z.array(z.object({ targets: z.array(z.object({ expr: z.string() })) })).min(1),
});
const log = { debug() {}, info() {}, warn() {}, error() {} };
const state: RunnerState = {
  runs: 3,
  sessions: 4,
  processes: 5,
  prewarmed: 2,
  backlog: { queuedRuns: 6, queuedBytes: 0, pendingDeliveries: 7, failedDeliveries: 8 },
  probes: [
    {
      kind: "sandbox",
      actor: "local",
      ageMs: 90_000,
      findings: [
        { capability: "network.deny", proven: true, how: "it was tried" },
        { capability: "resources.disk", proven: false, reason: "no quota", fix: "add one" },
      ],
    },
  ],
};

function observed(harness = "demo"): ObservedRun {
  const request = runRequestSchema.parse({ messages: [{ role: "user", content: "go" }] });
  return { runId: "r", request, harness, sandbox: "local", guarantees: [], redact: (text) => text, log };
}

function playInto(
  observer: PrometheusObserver,
  result: Partial<RunResult> = {},
  throughGateway = false,
): void {
  const run = observer.observe(observed());
  run.entered?.("opening");
  run.entered?.("streaming");
  if (throughGateway) {
    const exchange = run.modelCalled?.("m");
    exchange?.used({ model: "m", input: 100, cached: 40, output: 20, cost: 0.5 });
    exchange?.used({ model: "m", input: 0, cached: 0, cacheWritten: 8, output: 0, reasoning: 6 });
    exchange?.ended();
    run.modelCalled?.("m")?.ended({ status: 429, retryable: true, message: "slow down" });
  }
  run.happened?.({ type: "tool_call", id: "1", name: "any" });
  run.happened?.({ type: "tool_result", id: "1", output: "" });
  run.happened?.({ type: "tool_result", id: "2", output: "", isError: true, denied: true });
  run.happened?.({ type: "boundary_decision", target: "t", allowed: false, reason: "r", count: 7 });
  run.entered?.("closing");
  const usage = { input: 10, output: 5, total: 15 };
  run.ended?.({ ok: true, runId: "r", events: [], usage, ...result });
}

it("counts a call once that continues under another id", async () => {
  const counting = observer();
  const run = counting.observe(observed());
  run.happened?.({ type: "tool_call", id: "agents", name: "any" });
  run.callRenamed?.("agents", "ask_1");
  run.happened?.({ type: "tool_result", id: "agents", output: "DEFERRED_NOT_EXECUTED", isError: true });
  run.happened?.({ type: "tool_call", id: "ask_1", name: "any" });
  run.happened?.({ type: "tool_result", id: "ask_1", output: "" });
  const found = (await lines(counting)).filter((line) => line.startsWith("ambit_tool_call"));
  expect(found).toContain('ambit_tool_calls_total{outcome="completed"} 1');
  expect(found).toContain("ambit_tool_call_duration_seconds_count 1");
  expect(found.join()).not.toContain('outcome="failed"');
});

const observer = () => new PrometheusObserver(configSchema.parse({}).buckets);
const lines = async (from: PrometheusObserver) => (await from.scrape(state)).split("\n");

describe("the metrics of a runner", () => {
  it("count runs by outcome, tool calls, decisions, tokens and money", async () => {
    const counting = observer();
    playInto(counting);
    playInto(counting, { stopReason: "paused" }, true);
    playInto(counting, { ok: false, failure: { code: "model_failed", retryable: true } });
    counting.refused({ code: "boundary_refused", capabilities: ["network.deny"] });
    for (const outcome of ["delivered", "retried", "failed"] as const)
      counting.posted({ outcome, event: "run.finished" });
    counting.lost({ runId: "of-another", harness: "demo", sandbox: "local", begunAt: 0 });
    expect(await lines(counting)).toEqual(
      expect.arrayContaining([
        'ambit_runs_total{outcome="ok",harness="demo",sandbox="local"} 1',
        'ambit_runs_total{outcome="paused",harness="demo",sandbox="local"} 1',
        'ambit_runs_total{outcome="model_failed",harness="demo",sandbox="local"} 1',
        'ambit_requests_refused_total{code="boundary_refused"} 1',
        'ambit_runs_total{outcome="runner_lost",harness="demo",sandbox="local"} 1',
        'ambit_capability_refusals_total{capability="network.deny"} 1',
        'ambit_webhook_attempts_total{outcome="retried",event="run.finished"} 1',
        'ambit_tool_calls_total{outcome="completed"} 3',
        'ambit_tool_calls_total{outcome="denied"} 3',
        'ambit_boundary_decisions_total{allowed="false"} 21',
        // The gateway's count takes the place of the agent's.
        'ambit_tokens_total{type="input",harness="demo"} 120',
        'ambit_tokens_total{type="cached",harness="demo"} 40',
        'ambit_tokens_total{type="cache_written",harness="demo"} 8',
        'ambit_tokens_total{type="reasoning",harness="demo"} 6',
        'ambit_cost_usd_total{harness="demo"} 0.5',
        'ambit_model_requests_total{status="200"} 1',
        'ambit_model_requests_total{status="429"} 1',
        'ambit_run_stage_duration_seconds_count{stage="opening"} 3',
        'ambit_run_duration_seconds_count{harness="demo"} 3',
        "ambit_tool_call_duration_seconds_count 3",
      ]),
    );
  });

  it("show the current runs and sessions, and the findings and their age for each actor", async () => {
    expect(await lines(observer())).toEqual(
      expect.arrayContaining([
        "ambit_runs_active 3",
        "ambit_sessions 4",
        "ambit_processes 5",
        "ambit_runs_queued 6",
        'ambit_webhook_deliveries{state="pending"} 7',
        'ambit_webhook_deliveries{state="failed"} 8',
        'ambit_probe_age_seconds{kind="sandbox",actor="local"} 90',
        'ambit_capability_proven{kind="sandbox",actor="local",capability="network.deny"} 1',
        'ambit_capability_proven{kind="sandbox",actor="local",capability="resources.disk"} 0',
      ]),
    );
    const withoutProbes = await observer().scrape({ ...state, probes: [] });
    expect(withoutProbes).not.toContain('actor="local"');
  });

  it("omit figures of a store that doesn't respond", async () => {
    const { backlog: _none, ...without } = state;
    const counting = observer();
    await counting.scrape(state);
    expect(await counting.scrape(without)).not.toMatch(/^ambit_(runs_queued|webhook_deliveries)\b/m);
  });

  it("are those that the Grafana dashboard uses", async () => {
    const counting = observer();
    playInto(counting, {}, true);
    counting.refused({ code: "boundary_refused", capabilities: ["network.deny"] });
    counting.posted({ outcome: "delivered", event: "run.finished" });
    const shown = await counting.scrape(state);
    const series = new Set([...shown.matchAll(/^(ambit_\w+)/gm)].map(([, name]) => name));
    const dashboard = new URL("../../../examples/monitoring/grafana.json", import.meta.url);
    const { panels } = dashboardSchema.parse(JSON.parse(await readFile(dashboard, "utf8")));
    const asked = panels.flatMap(({ targets }) =>
      targets.flatMap(({ expr }) => expr.match(/ambit_\w+/g) ?? []),
    );
    expect(asked.length).toBeGreaterThan(panels.length);
    expect(asked.filter((name) => !series.has(name))).toEqual([]);
  });

  it("count a request as its provider corrected it, and at the latest when its run ends", async () => {
    const counting = observer();
    const run = counting.observe(observed());
    const exchange = run.modelCalled?.("m");
    exchange?.used({ model: "m", input: 1_000, cached: 0, output: 0, cost: 0.5 });
    // Most of it came from the cache, after all.
    exchange?.used({ model: "m", input: 0, cached: 900, output: 10, cost: -0.375 });
    run.modelCalled?.("m")?.used({ model: "m", input: 1, cached: 0, output: 0, cost: 0.125 });
    exchange?.ended();
    run.ended?.({ ok: true, runId: "r", events: [] });
    expect(await lines(counting)).toContain('ambit_cost_usd_total{harness="demo"} 0.25');
  });

  it("have a bounded number of series, whatever agents and callers send", async () => {
    const counting = observer();
    playInto(counting, {}, true);
    const before = (await lines(counting)).length;
    for (let each = 0; each < 50; each += 1) {
      const run = counting.observe(observed());
      run.modelCalled?.(`model-${each}`)?.ended();
      run.happened?.({ type: "tool_call", id: `${each}`, name: `tool-${each}` });
      run.happened?.({ type: "tool_result", id: `${each}`, output: "" });
      run.happened?.({ type: "boundary_decision", target: `${each}`, allowed: false, reason: "", count: 1 });
      run.ended?.({ ok: true, runId: `${each}`, events: [] });
    }
    expect((await lines(counting)).length).toBe(before);
  });

  it("are scraped by Prometheus", { timeout: 60_000 }, async (context) => {
    if (!existsSync("/usr/bin/prometheus"))
      context.skip("host: no /usr/bin/prometheus: apt-get install prometheus");
    const counting = observer();
    playInto(counting);
    const server = createServer(async (_request, response) => {
      response.setHeader("content-type", "text/plain; version=0.0.4; charset=utf-8");
      response.end(await counting.scrape(state));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const url = await startPrometheus(portOf(server.address()));
    const value = async (query: string) => {
      const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(query)}`).catch(
        () => undefined,
      );
      if (answer?.ok !== true) return undefined;
      return answerSchema.parse(await answer.json()).data.result[0]?.value[1];
    };
    await expect.poll(() => value("ambit_runs_total"), { timeout: 40_000 }).toBe("1");
    expect(await value('ambit_capability_proven{capability="network.deny"}')).toBe("1");
    expect(await value("histogram_quantile(0.5, ambit_run_duration_seconds_bucket)")).toBeDefined();
    expect(await value("process_resident_memory_bytes > 1000000")).toBeDefined();
  });
});

function portOf(address: string | AddressInfo | null): number {
  if (address === null || typeof address === "string") throw new Error("it doesn't listen");
  return address.port;
}

async function startPrometheus(scraped: number): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-prometheus-"));
  const config = join(folder, "prometheus.yml");
  await writeFile(
    config,
    `global: {scrape_interval: 1s}\nscrape_configs: [{job_name: ambit, static_configs: [{targets: ["127.0.0.1:${scraped}"]}]}]\n`,
  );
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const port = portOf(probe.address());
  probe.close();
  const prometheus: ChildProcess = spawn(
    "/usr/bin/prometheus",
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: "ignore" },
  );
  onTestFinished(async () => {
    prometheus.kill("SIGKILL");
    await once(prometheus, "exit");
    await rm(folder, { recursive: true, force: true });
  });
  return `http://127.0.0.1:${port}`;
}
