import type {
  AgentEvent,
  LostRun,
  ModelExchange,
  ModelUsage,
  ObservedRefusal,
  ObservedRun,
  PrewarmClaim,
  RunnerState,
  RunObservation,
  RunObserver,
  RunResult,
  StageName,
  WebhookAttempt,
} from "@ambit/core/plugin";
import type { Measurement, MetricChange } from "./definitions.js";

/** Counts what happens in runs. A subclass keeps the figures, in its format. */
export abstract class FigureObserver implements RunObserver {
  abstract readonly name: string;

  /** Where the figures are kept. Loaded with the first of them, not with the server. */
  protected abstract opened(): Promise<{ record(change: MetricChange): void }>;

  readonly record = (change: MetricChange): void => {
    void this.opened().then((figures) => figures.record(change));
  };

  observe(run: ObservedRun): RunObservation {
    return new RunFigures(run, this.record);
  }

  refused({ code, capabilities }: ObservedRefusal): void {
    this.record({ counter: "refused", by: 1, labels: { code } });
    for (const capability of capabilities) this.record({ counter: "missing", by: 1, labels: { capability } });
  }

  lost({ harness, sandbox }: LostRun): void {
    this.record({ counter: "runs", by: 1, labels: { outcome: "runner_lost", harness, sandbox } });
  }

  prewarmed({ outcome, harness }: PrewarmClaim): void {
    this.record({ counter: "prewarmClaims", by: 1, labels: { outcome, harness } });
  }

  posted({ outcome, event }: WebhookAttempt): void {
    this.record({ counter: "posted", by: 1, labels: { outcome, event } });
  }
}

/** The present values of all gauges. Without an answer of the store its own have none, instead of an old one or 0. Pure. */
export function measure({
  runs,
  sessions,
  processes,
  prewarmed,
  backlog,
  probes,
}: RunnerState): readonly Measurement[] {
  return [
    { gauge: "active", value: runs, labels: {} },
    { gauge: "sessions", value: sessions, labels: {} },
    { gauge: "processes", value: processes, labels: {} },
    { gauge: "prewarmed", value: prewarmed, labels: {} },
    ...(backlog === undefined ? [] : measureBacklog(backlog)),
    ...probes.flatMap(({ kind, actor, ageMs, findings }): Measurement[] => [
      { gauge: "probeAge", value: ageMs / 1_000, labels: { kind, actor } },
      ...findings.map(
        ({ capability, proven }): Measurement => ({
          gauge: "proven",
          value: proven ? 1 : 0,
          labels: { kind, actor, capability },
        }),
      ),
    ]),
  ];
}

function measureBacklog({
  queuedRuns,
  pendingDeliveries,
  failedDeliveries,
}: NonNullable<RunnerState["backlog"]>): readonly Measurement[] {
  return [
    { gauge: "queued", value: queuedRuns, labels: {} },
    { gauge: "deliveries", value: pendingDeliveries, labels: { state: "pending" } },
    { gauge: "deliveries", value: failedDeliveries, labels: { state: "failed" } },
  ];
}

type RunUsage = Omit<ModelUsage, "model">;

/** Open calls whose duration is measured in one run. */
const maxOpenCalls = 1_000;

/** What one run adds to the figures. */
class RunFigures implements RunObservation {
  readonly #began = performance.now();
  readonly #calls = new Map<string, number>();
  /** Earlier ids of calls that continue under another one. */
  readonly #renamed = new Set<string>();
  #stage: { readonly name: StageName; readonly began: number } | undefined;
  /** Requests to the model that haven't ended. */
  readonly #open = new Set<{ readonly total: RunUsage | undefined }>();
  /** Whether a gateway counted the tokens: then the agent's own count isn't added. */
  #isCounted = false;

  constructor(
    readonly run: Pick<ObservedRun, "harness" | "sandbox">,
    readonly record: (recording: MetricChange) => void,
  ) {}

  entered(stage: StageName): void {
    this.#endStage();
    this.#stage = { name: stage, began: performance.now() };
  }

  happened(event: AgentEvent): void {
    if (event.type === "boundary_decision") {
      const { allowed, count } = event;
      this.record({ counter: "decisions", by: count, labels: { allowed: String(allowed) } });
    } else if (event.type === "tool_call") {
      if (this.#calls.size < maxOpenCalls && !this.#calls.has(event.id))
        this.#calls.set(event.id, performance.now());
    } else if (event.type === "tool_result") this.#returned(event);
  }

  callRenamed(from: string, to: string): void {
    const began = this.#calls.get(from);
    if (began === undefined) return;
    this.#calls.delete(from);
    this.#calls.set(to, began);
    // A reader gets a result for the earlier id too, which ends no call.
    if (this.#renamed.size < maxOpenCalls) this.#renamed.add(from);
  }

  modelCalled(): ModelExchange {
    this.#isCounted = true;
    // Counted at its end: a provider may correct its counts downwards, which a counter can't take back.
    const exchange: { total: RunUsage | undefined } = { total: undefined };
    this.#open.add(exchange);
    return {
      used: (usage) => {
        exchange.total = sumOf(exchange.total, usage);
      },
      ended: (failure) => {
        this.#close(exchange);
        const status = failure === undefined ? "200" : String(failure.status ?? "none");
        this.record({ counter: "modelRequests", by: 1, labels: { status } });
      },
    };
  }

  ended(result: RunResult): void {
    this.#endStage();
    for (const exchange of this.#open) this.#close(exchange);
    const { harness, sandbox } = this.run;
    const outcome = outcomeOf(result);
    const { usage } = result;
    this.record({ counter: "runs", by: 1, labels: { outcome, harness, sandbox } });
    this.record({ histogram: "runSeconds", seconds: secondsSince(this.#began), labels: { harness } });
    if (usage !== undefined && !this.#isCounted) {
      const { input = 0, cached = 0, output = 0 } = usage;
      this.#used({ ...usage, input, cached, output });
    }
  }

  #close(exchange: { readonly total: RunUsage | undefined }): void {
    if (this.#open.delete(exchange) && exchange.total !== undefined) this.#used(exchange.total);
  }

  #used({ input, cached, cacheWritten = 0, output, reasoning = 0, cost }: RunUsage): void {
    const { harness } = this.run;
    const tokens = { input, cached, cache_written: cacheWritten, output, reasoning };
    for (const [type, by] of Object.entries(tokens))
      this.record({ counter: "tokens", by, labels: { type, harness } });
    if (cost !== undefined) this.record({ counter: "cost", by: cost, labels: { harness } });
  }

  #returned({ id, isError, denied }: Extract<AgentEvent, { type: "tool_result" }>): void {
    if (id !== undefined && this.#renamed.delete(id)) return;
    const outcome = denied === true ? "denied" : isError === true ? "failed" : "completed";
    const began = id === undefined ? undefined : this.#calls.get(id);
    if (id !== undefined) this.#calls.delete(id);
    this.record({ counter: "toolCalls", by: 1, labels: { outcome } });
    if (began !== undefined)
      this.record({ histogram: "toolSeconds", seconds: secondsSince(began), labels: {} });
  }

  #endStage(): void {
    const stage = this.#stage;
    if (stage === undefined) return;
    const seconds = secondsSince(stage.began);
    this.record({ histogram: "stageSeconds", seconds, labels: { stage: stage.name } });
    this.#stage = undefined;
  }
}

function sumOf(before: RunUsage | undefined, usage: RunUsage): RunUsage {
  if (before === undefined) return usage;
  const { input, cached, cacheWritten = 0, output, reasoning = 0 } = usage;
  const costs = [before.cost, usage.cost].filter((cost) => cost !== undefined);
  return {
    input: before.input + input,
    cached: before.cached + cached,
    cacheWritten: (before.cacheWritten ?? 0) + cacheWritten,
    output: before.output + output,
    reasoning: (before.reasoning ?? 0) + reasoning,
    ...(costs.length === 0 ? {} : { cost: costs.reduce((sum, cost) => sum + cost) }),
  };
}

function outcomeOf({ ok, stopReason, failure }: RunResult): string {
  if (!ok) return failure?.code ?? "internal";
  return stopReason === "paused" || stopReason === "cancelled" ? stopReason : "ok";
}

function secondsSince(began: number): number {
  return (performance.now() - began) / 1_000;
}
