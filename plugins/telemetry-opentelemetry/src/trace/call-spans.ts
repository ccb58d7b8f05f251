import type { AgentEventOf, TracedCall } from "@ambit/core/plugin";
import { ofInteraction, ofTool } from "./attributes.js";
import type { EndedSpan, RunSpans, Span } from "./span.js";

/** Calls of one run that have had another id. */
const maxRenamed = 1_000;
/** Waits of one run that are open at the same time. */
const maxWaits = 256;

/**
 * The tool calls of a run. A call has one span, from its first word to its result, with the wait for its user inside it,
 * also where it continues under another id because its user is asked.
 */
export class CallSpans {
  /** By the id of the call. */
  readonly #open = new Map<string, Span>();
  /** The present ids of calls that had another one. */
  readonly #renamed = new Map<string, string>();
  /** Of questions, by the question's id. */
  readonly #waits = new Map<string, Span>();

  constructor(
    readonly spans: RunSpans,
    /** The stage under way. */
    readonly stage: () => Span,
    readonly emit: (span: EndedSpan) => void,
    readonly capturesContent: boolean,
  ) {}

  /** The call's span, which begins here if the agent hasn't reported it yet. Undefined beyond the limit. */
  of({ id: given, name }: TracedCall): Span | undefined {
    const id = this.#presentId(given);
    return this.#open.get(id) ?? this.#begin(id, name);
  }

  rename(from: string, to: string): void {
    if (this.#renamed.size < maxRenamed) this.#renamed.set(from, to);
    const span = this.#open.get(from);
    if (span === undefined || from === to || this.#open.has(to)) return;
    this.#open.delete(from);
    this.#open.set(to, span);
    span.set({ "gen_ai.tool.call.id": to });
  }

  called({ id, name, input }: AgentEventOf<"tool_call">): void {
    if (id === undefined) return;
    const span = this.#open.get(id) ?? this.#begin(id, name);
    if (span === undefined) return;
    if (name !== undefined) {
      span.rename(`execute_tool ${name}`);
      span.set(ofTool(id, name));
    }
    if (this.capturesContent && input !== undefined)
      span.set({ "gen_ai.tool.call.arguments": JSON.stringify(input) });
  }

  returned({ id, output, isError, denied }: AgentEventOf<"tool_result">): void {
    const span = id === undefined ? undefined : this.#open.get(id);
    if (id === undefined || span === undefined) return;
    this.#open.delete(id);
    this.#endWait(id);
    if (denied === true) span.failed("permission_denied", "The call was denied.");
    else if (isError === true) span.failed("tool_error", "The tool failed.");
    if (this.capturesContent && output !== undefined)
      span.set({ "gen_ai.tool.call.result": typeof output === "string" ? output : JSON.stringify(output) });
    this.emit(span.end());
  }

  asked({ id, kind }: AgentEventOf<"interaction_request">): void {
    if (this.#waits.has(id) || this.#waits.size >= maxWaits) return;
    const below = this.#open.get(id) ?? this.stage();
    const name = `wait_for_user ${kind}`;
    const wait = this.spans.beginCounted({ name, attributes: ofInteraction(id, kind) }, below);
    if (wait !== undefined) this.#waits.set(id, wait);
  }

  /** An answer that was given before the run began has had no wait in it. */
  answered({ id, kind, payload }: AgentEventOf<"interaction_response">): void {
    const approved = typeof payload?.approved === "boolean" ? payload.approved : undefined;
    const attributes = { "ambit.interaction.approved": approved };
    const wait = this.#waits.get(id);
    if (wait === undefined) {
      const of = this.#open.get(id) ?? this.stage();
      of.happened("ambit.interaction.answer", { ...ofInteraction(id, kind), ...attributes });
      return;
    }
    wait.set(attributes);
    this.#endWait(id);
  }

  withdrawn({ id }: AgentEventOf<"interaction_expired">): void {
    this.#endWait(id);
  }

  /** The turn ends: the rest is paused, interrupted, or never answered. */
  interrupt(): void {
    for (const wait of this.#waits.values()) this.emit(interrupted(wait));
    for (const call of this.#open.values()) this.emit(interrupted(call));
    this.#waits.clear();
    this.#open.clear();
    this.#renamed.clear();
  }

  /** A call has two other ids at most: the runner's own, then the agent's, then that of its question. */
  #presentId(id: string): string {
    const next = this.#renamed.get(id) ?? id;
    return this.#renamed.get(next) ?? next;
  }

  #begin(id: string, name: string | undefined): Span | undefined {
    const span = this.spans.beginCounted(
      { name: name === undefined ? "execute_tool" : `execute_tool ${name}`, attributes: ofTool(id, name) },
      this.stage(),
    );
    if (span !== undefined) this.#open.set(id, span);
    return span;
  }

  #endWait(id: string): void {
    const wait = this.#waits.get(id);
    if (wait !== undefined) this.emit(wait.end());
    this.#waits.delete(id);
  }
}

function interrupted(span: Span): EndedSpan {
  span.set({ "ambit.interrupted": true });
  return span.end();
}
