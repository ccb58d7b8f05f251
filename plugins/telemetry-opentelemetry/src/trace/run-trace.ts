import { randomBytes } from "node:crypto";
import type {
  AgentEvent,
  ModelExchange,
  ModelUsage,
  ObservedRun,
  RemoteSpan,
  RunObservation,
  RunResult,
  StageName,
  TracedCall,
} from "@ambit/core/plugin";
import type { ExportDestination } from "../destination.js";
import {
  finishReason,
  inputMessages,
  messages,
  ofDecision,
  ofResult,
  ofRun,
  providerName,
} from "./attributes.js";
import { CallSpans } from "./call-spans.js";
import { recoveryOf } from "./recovery.js";
import { type EndedSpan, RunSpans, Span } from "./span.js";

const stageNames: Readonly<Record<StageName, string>> = {
  opening: "sandbox.open",
  filling: "workspace.fill",
  starting: "agent.start",
  streaming: "turn",
  collecting: "outputs.collect",
  closing: "run.close",
};

/** How a run's trace begins. */
export interface TraceStart {
  readonly traceId: string;
  /** W3C flags: whether it is exported. */
  readonly flags: number;
}

/** One run as spans: `invoke_agent`, below it its stages, below the turn what the agent did. */
export class RunTrace implements RunObservation {
  readonly traceId: string;
  readonly #root: Span;
  readonly #spans: RunSpans;
  readonly #calls: CallSpans;
  readonly #models = new Set<Span>();
  readonly #capturesContent: boolean;
  #stage: Span | undefined;
  #responseModel: string | undefined;

  /**
   * @param emit called with each span when it ends, the run's own last.
   * @param now milliseconds since the epoch.
   */
  constructor(
    readonly run: ObservedRun,
    readonly emit: (span: EndedSpan) => void,
    { traceId, flags }: TraceStart = newTrace(run),
    readonly destination: ExportDestination = "environment",
    now: () => number = () => performance.timeOrigin + performance.now(),
  ) {
    const { request, harness, parent: caller } = run;
    const tracestate = caller === undefined ? undefined : request.context?.propagation?.tracestate;
    this.traceId = traceId;
    this.#capturesContent = request.telemetry?.capture?.content?.enabled === true;
    const trace = { traceId, flags, tracestate };
    const parent = caller === undefined ? undefined : { spanId: caller.spanId, isRemote: true };
    const name = `invoke_agent ${harness}`;
    this.#root = new Span({ ...trace, parent, name, attributes: ofRun(run) }, now);
    if (this.#capturesContent) this.#root.set({ "gen_ai.input.messages": inputMessages(run) });
    this.#spans = new RunSpans(trace, this.#root, now);
    this.#calls = new CallSpans(this.#spans, () => this.#current, emit, this.#capturesContent);
  }

  traceparent(call?: TracedCall): string {
    const span = call === undefined ? undefined : this.#calls.of(call);
    return (span ?? this.#current).traceparent;
  }

  recovery(): string {
    return recoveryOf(this.#root, this.destination);
  }

  resumed(span: RemoteSpan): void {
    this.#root.link(span);
  }

  callRenamed(from: string, to: string): void {
    this.#calls.rename(from, to);
  }

  entered(stage: StageName): void {
    if (stage === "closing") this.#endTurn();
    this.#endStage();
    this.#stage = this.#spans.begin({ name: stageNames[stage] }, this.#root);
  }

  happened(event: AgentEvent): void {
    if (event.type === "tool_call") this.#calls.called(event);
    else if (event.type === "tool_result") this.#calls.returned(event);
    else if (event.type === "boundary_decision")
      this.#current.happened("ambit.boundary.decision", ofDecision(event));
    else if (event.type === "interaction_request") this.#calls.asked(event);
    else if (event.type === "interaction_response") this.#calls.answered(event);
    else if (event.type === "interaction_expired") this.#calls.withdrawn(event);
  }

  modelCalled(model: string): ModelExchange | undefined {
    const attributes = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": providerName(this.run.request.modelConnection?.provider),
      "gen_ai.request.model": model,
    };
    const span = this.#spans.beginCounted(
      { name: `chat ${model}`, kind: "client", attributes },
      this.#current,
    );
    if (span === undefined) return undefined;
    this.#models.add(span);
    const total = { input: 0, cached: 0, cacheWritten: 0, output: 0, reasoning: 0 };
    return {
      used: (usage: ModelUsage) => {
        total.input += usage.input;
        total.cached += usage.cached;
        total.cacheWritten += usage.cacheWritten ?? 0;
        total.output += usage.output;
        total.reasoning += usage.reasoning ?? 0;
        if (model === this.run.model) this.#responseModel = usage.model;
        span.set({
          "gen_ai.response.model": usage.model,
          "gen_ai.usage.input_tokens": total.input,
          "gen_ai.usage.cache_read.input_tokens": total.cached,
          "gen_ai.usage.cache_creation.input_tokens": total.cacheWritten,
          "gen_ai.usage.output_tokens": total.output,
          "gen_ai.usage.reasoning.output_tokens": total.reasoning,
        });
      },
      ended: (failure) => {
        if (!this.#models.delete(span)) return;
        if (failure !== undefined) {
          span.set({ "http.response.status_code": failure.status });
          span.failed(failure.status === undefined ? "no_response" : String(failure.status), failure.message);
        }
        this.emit(span.end());
      },
    };
  }

  ended(result: RunResult): void {
    this.#endTurn();
    this.#endStage();
    const { run } = this;
    const root = this.#root;
    root.set(ofResult(result, run.model, this.#responseModel));
    if (this.#spans.dropped > 0) root.set({ "ambit.spans.dropped": this.#spans.dropped });
    if (this.#capturesContent && result.output !== undefined && result.output !== "")
      root.set({
        "gen_ai.output.messages": messages("assistant", result.output, finishReason(result)),
      });
    if (!result.ok) root.failed(result.failure?.code ?? "_OTHER", result.error ?? "The run failed.");
    this.emit(root.end());
  }

  get #current(): Span {
    return this.#stage ?? this.#root;
  }

  /** What is still open when the turn ends: paused, interrupted, or never answered. */
  #endTurn(): void {
    this.#calls.interrupt();
    for (const span of this.#models) {
      span.set({ "ambit.interrupted": true });
      this.emit(span.end());
    }
    this.#models.clear();
  }

  #endStage(): void {
    if (this.#stage !== undefined) this.emit(this.#stage.end());
    this.#stage = undefined;
  }
}

/** The caller's trace, else one of its own. */
function newTrace({ parent }: Pick<ObservedRun, "parent">): TraceStart {
  return { traceId: parent?.traceId ?? newTraceId(), flags: parent?.flags ?? 1 };
}

export function newTraceId(): string {
  return randomBytes(16).toString("hex");
}
