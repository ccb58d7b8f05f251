import { randomBytes } from "node:crypto";
import type {
  AgentEvent,
  ModelExchange,
  ModelUsage,
  ObservedRun,
  ObservedStage,
  RunObservation,
  RunResult,
} from "@ambit/core/plugin";
import {
  finishReason,
  inputMessages,
  messages,
  ofDecision,
  ofResult,
  ofRun,
  ofTool,
  providerName,
} from "./attributes.js";
import { type EndedSpan, Span, type SpanParent, type SpanStart } from "./span.js";

const stageNames: Readonly<Record<ObservedStage, string>> = {
  opening: "sandbox.open",
  starting: "agent.start",
  streaming: "turn",
  closing: "run.close",
};

/** Tool calls and requests to the model that get a span of their own in one run. */
const maxSpans = 1_000;

/** One run as spans: `invoke_agent`, below it its stages, below the turn what the agent did. */
export class RunTrace implements RunObservation {
  readonly traceId: string;
  readonly #flags: number;
  readonly #tracestate: string | undefined;
  readonly #root: Span;
  readonly #tools = new Map<string, Span>();
  readonly #models = new Set<Span>();
  readonly #capturesContent: boolean;
  #stage: Span | undefined;
  #spans = 0;
  #dropped = 0;

  /**
   * @param emit called with each span when it ends, the run's own last.
   * @param now milliseconds since the epoch.
   */
  constructor(
    readonly run: ObservedRun,
    readonly emit: (span: EndedSpan) => void,
    readonly now: () => number = () => performance.timeOrigin + performance.now(),
  ) {
    const { request, harness, parent: caller } = run;
    this.#tracestate = caller === undefined ? undefined : request.context?.propagation?.tracestate;
    this.traceId = caller?.traceId ?? randomBytes(16).toString("hex");
    this.#flags = caller?.flags ?? 1;
    this.#capturesContent = request.telemetry?.capture?.content?.enabled === true;
    const parent = caller === undefined ? undefined : { spanId: caller.spanId, isRemote: true };
    const { traceId } = this;
    const given = {
      traceId,
      flags: this.#flags,
      tracestate: this.#tracestate,
      parent,
      name: `invoke_agent ${harness}`,
      attributes: ofRun(run),
    };
    this.#root = new Span(given, now);
    if (this.#capturesContent) this.#root.set({ "gen_ai.input.messages": inputMessages(run) });
  }

  traceparent(callId?: string): string {
    const tool = callId === undefined ? undefined : this.#tool(callId);
    return (tool ?? this.#stage ?? this.#root).traceparent;
  }

  entered(stage: ObservedStage): void {
    if (stage === "closing") this.#endTurn();
    this.#endStage();
    this.#stage = this.#begin({ name: stageNames[stage] });
  }

  happened(event: AgentEvent): void {
    if (event.type === "tool_call") this.#called(event);
    else if (event.type === "tool_result") this.#returned(event);
    else if (event.type === "boundary_decision")
      (this.#stage ?? this.#root).happened("ambit.boundary.decision", ofDecision(event));
    else if (event.type === "interaction_request" || event.type === "interaction_response") {
      const name =
        event.type === "interaction_request" ? "ambit.interaction.request" : "ambit.interaction.response";
      (this.#stage ?? this.#root).happened(name, {
        "ambit.interaction.kind": event.kind,
        "gen_ai.tool.call.id": event.id,
      });
    }
  }

  modelCalled(model: string): ModelExchange | undefined {
    if (this.#isFull()) return undefined;
    const attributes = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": providerName(this.run.request.modelConnection?.provider),
      "gen_ai.request.model": model,
    };
    const span = this.#begin({ name: `chat ${model}`, kind: "client", attributes }, this.#current());
    this.#models.add(span);
    const total = { input: 0, cached: 0, cacheWritten: 0, output: 0, reasoning: 0 };
    return {
      used: (usage: ModelUsage) => {
        total.input += usage.input;
        total.cached += usage.cached;
        total.cacheWritten += usage.cacheWritten ?? 0;
        total.output += usage.output;
        total.reasoning += usage.reasoning ?? 0;
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
    this.#root.set(ofResult(result));
    if (this.#dropped > 0) this.#root.set({ "ambit.spans.dropped": this.#dropped });
    if (this.#capturesContent && result.output !== undefined && result.output !== "")
      this.#root.set({
        "gen_ai.output.messages": messages("assistant", result.output, finishReason(result)),
      });
    if (!result.ok) this.#root.failed(result.failure?.code ?? "_OTHER", result.error ?? "The run failed.");
    this.emit(this.#root.end());
  }

  #called({ id, name, input }: Extract<AgentEvent, { type: "tool_call" }>): void {
    if (id === undefined) return;
    const span = this.#tool(id);
    if (span === undefined) return;
    if (name !== undefined) {
      span.rename(`execute_tool ${name}`);
      span.set(ofTool(id, name));
    }
    if (this.#capturesContent && input !== undefined)
      span.set({ "gen_ai.tool.call.arguments": JSON.stringify(input) });
  }

  #returned({ id, output, isError, denied }: Extract<AgentEvent, { type: "tool_result" }>): void {
    const span = id === undefined ? undefined : this.#tools.get(id);
    if (id === undefined || span === undefined) return;
    this.#tools.delete(id);
    if (denied === true) span.failed("permission_denied", "The call was denied.");
    else if (isError === true) span.failed("tool_error", "The tool failed.");
    if (this.#capturesContent && output !== undefined)
      span.set({ "gen_ai.tool.call.result": typeof output === "string" ? output : JSON.stringify(output) });
    this.emit(span.end());
  }

  #tool(id: string): Span | undefined {
    const known = this.#tools.get(id);
    if (known !== undefined) return known;
    if (this.#isFull()) return undefined;
    const span = this.#begin({ name: "execute_tool", attributes: ofTool(id, undefined) }, this.#current());
    this.#tools.set(id, span);
    return span;
  }

  #isFull(): boolean {
    this.#spans += 1;
    if (this.#spans <= maxSpans) return false;
    this.#dropped += 1;
    return true;
  }

  /** Calls that are still open when the turn ends: paused, interrupted, or never answered. */
  #endTurn(): void {
    for (const span of [...this.#tools.values(), ...this.#models]) {
      span.set({ "ambit.interrupted": true });
      this.emit(span.end());
    }
    this.#tools.clear();
    this.#models.clear();
  }

  #endStage(): void {
    if (this.#stage !== undefined) this.emit(this.#stage.end());
    this.#stage = undefined;
  }

  #current(): SpanParent {
    return { spanId: (this.#stage ?? this.#root).spanId, isRemote: false };
  }

  /** Below the run's own span by default. */
  #begin(
    given: Pick<SpanStart, "name" | "kind" | "attributes">,
    parent: SpanParent = { spanId: this.#root.spanId, isRemote: false },
  ): Span {
    const trace = { traceId: this.traceId, flags: this.#flags, tracestate: this.#tracestate };
    return new Span({ ...given, ...trace, parent }, this.now);
  }
}
