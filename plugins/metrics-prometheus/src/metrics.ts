import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/**
 * All that is counted. No label holds what a caller or an agent chooses freely: each value would be a series of its
 * own, forever.
 */
export function createMetrics(buckets: readonly number[]) {
  const registers = [new Registry()];
  const [registry = new Registry()] = registers;
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Gauge({ name, help, labelNames, registers });
  const seconds = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Histogram({ name, help, labelNames, registers, buckets: [...buckets] });
  collectDefaultMetrics({ register: registry });
  return {
    registry,
    runs: counter(
      "ambit_runs_total",
      "Runs that have ended, by outcome: ok, paused, cancelled, or a failure's code.",
      ["outcome", "harness", "sandbox"],
    ),
    active: gauge("ambit_runs_active", "Runs in progress."),
    refused: counter("ambit_requests_refused_total", "Requests that started no run, by their error's code.", [
      "code",
    ]),
    missing: counter(
      "ambit_capability_refusals_total",
      "Refused requests, by each capability that some actor could not guarantee.",
      ["capability"],
    ),
    runSeconds: seconds("ambit_run_duration_seconds", "From admission to result.", ["harness"]),
    stageSeconds: seconds("ambit_run_stage_duration_seconds", "Stages of a run.", ["stage"]),
    toolCalls: counter("ambit_tool_calls_total", "Tool calls that have ended.", ["outcome"]),
    toolSeconds: seconds(
      "ambit_tool_call_duration_seconds",
      "Tool calls, from the agent's call to its result.",
      [],
    ),
    modelRequests: counter(
      "ambit_model_requests_total",
      "Requests through the model gateway, by HTTP status.",
      ["status"],
    ),
    tokens: counter("ambit_tokens_total", "Tokens, as the provider or the agent counts them.", [
      "type",
      "harness",
    ]),
    cost: counter("ambit_cost_usd_total", "US dollars, of models that have a price.", ["harness"]),
    decisions: counter(
      "ambit_boundary_decisions_total",
      "Connections that a boundary let through or refused.",
      ["allowed"],
    ),
    sessions: gauge("ambit_sessions", "Open sessions, those of runs under way included."),
    processes: gauge("ambit_processes", "Processes in the sandboxes of open sessions."),
    queued: gauge("ambit_runs_queued", "Detached runs that wait for a place, over all replicas."),
    posted: counter("ambit_webhook_attempts_total", "Webhook messages that were posted, by outcome.", [
      "outcome",
      "event",
    ]),
    deliveries: gauge("ambit_webhook_deliveries", "Stored webhook messages, over all replicas.", ["state"]),
    probeAge: gauge("ambit_probe_age_seconds", "Since the actor was last probed.", ["kind", "actor"]),
    proven: gauge(
      "ambit_capability_proven",
      "1 for a capability that was proven on this host, 0 for one that was not.",
      ["kind", "actor", "capability"],
    ),
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
