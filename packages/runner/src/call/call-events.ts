/** What the caller reads of a run's calls: announcements, output and results. */

import type { AgentEvent, AgentEventOf, ToolSpec } from "@ambit/core/contract";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../events/run-events.js";
import { canonicalJson } from "../json-values.js";
import { Pause } from "../lifetime/scope.js";
import { looksIssued } from "../parse/messages.js";
import { ApprovedCalls, approvalIn } from "./answer.js";
import { type Call, type CallState, Calls, moved, publicIdOf, unsettled, waitsForUser } from "./call.js";
import { CallPermissions } from "./permissions.js";
import { RunTools } from "./run-tools.js";

/** Only calls that an agent reports by name can be distinguished from its others. */
type NamedCall = AgentEventOf<"tool_call"> & { readonly name: string };

/** The id of a question about a call that is announced. */
interface AnnouncedQuestion {
  readonly asks?: string;
  readonly resumes?: string;
}

/** An event of a subagent, which its agent reports with the id of the call that began it. */
export type NestedEvent = AgentEventOf<
  "message" | "thought" | "message_start" | "thought_start" | "data" | "file"
> & { readonly parentToolCallId: string };

/** Milliseconds that a reported call may wait for its question or its execution. */
const holdMs = 1_000;
/** Milliseconds that a question waits for the agent's report of its call. */
const reportMs = 500;
/** Reports of calls that may be held back at the same time. Further ones are passed on immediately. */
const maxHeld = 32;

/**
 * The caller's view of a run's calls: the agent's own events, completed with what only the runner knows.
 *
 * A call that its user is asked about has an id that the runner issued, so that the answer can be distinguished from an
 * invented one; every other call has the agent's, which never looks like one of ours. So a call that may have to ask is
 * held back until it asks, runs or ends, for a second at most.
 */
@injectable()
export class CallEvents {
  /** The agent's reports that are held back, by `Call.id`. */
  readonly #held = new Map<string, { event: NamedCall; readonly timer: NodeJS.Timeout }>();
  /** Calls that reached the runner before the agent's report of them, by `Call.id`. */
  readonly #early = new Map<string, PromiseWithResolvers<void>>();
  /** Whether the agent didn't report a call in time: it isn't waited for again. */
  #isSilent = false;

  constructor(
    @inject(Calls) private readonly calls: Calls,
    @inject(RunTools) private readonly tools: RunTools,
    @inject(CallPermissions) private readonly permissions: CallPermissions,
    @inject(Pause) private readonly pause: Pause,
    @inject(ApprovedCalls) private readonly approved: ApprovedCalls,
    @inject(RunEvents) private readonly events: RunEvents,
  ) {}

  /**
   * The events that the caller gets for an event of the agent. None for a false failure: stopped by a pause, an agent
   * fails every call that is still open.
   */
  complete(event: AgentEventOf<"tool_call" | "tool_output" | "tool_result">): readonly AgentEvent[] {
    if (event.type === "tool_result") return this.#result(event);
    if (event.type === "tool_output") return this.#output(event);
    return isNamed(event) ? this.#report(event) : [{ ...event, id: this.publicIdOf(event.id) }];
  }

  /**
   * Waits until the agent has reported a call that its user is about to be asked about: everything that the agent said
   * before then comes before the question. Only as long as such a report may take.
   */
  async reported({ id }: Call, signal: AbortSignal): Promise<void> {
    const call = this.calls.find(id);
    if (call === undefined || call.isReported || this.#isSilent || signal.aborted) return;
    const early = Promise.withResolvers<void>();
    const stop = () => early.resolve();
    const timer = setTimeout(() => {
      this.#isSilent = true;
      stop();
    }, reportMs);
    signal.addEventListener("abort", stop, { once: true });
    this.#early.set(id, early);
    await early.promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    this.#early.delete(id);
  }

  /**
   * Announces a call before it is decided on, unless it was announced before.
   * @param about `asks`: the question under whose id its user is asked: it is announced only under this id, as exactly the call
   * that the question is about. `resumes`: the earlier question whose answer decides on it.
   */
  announce(claimed: Call, { asks: issued, resumes }: AnnouncedQuestion = {}): void {
    const { id, name, input } = claimed;
    const call = this.calls.find(id) ?? this.calls.begin(id, claimed);
    const wasAnnounced = call.announcement === "announced" || call.announcement === "awaited";
    if (wasAnnounced && issued === undefined) return;
    if (issued !== undefined) this.events.observation.callRenamed(call.publicId, issued);
    if (wasAnnounced && issued !== undefined) this.events.emit(moved(call.publicId, issued));
    this.#takeHeld(call);
    const { publicId } = this.calls.announce(call, call.isReported ? "announced" : "awaited", issued);
    const resumed = resumes === undefined ? {} : { resumes };
    const shown = { type: "tool_call", id: publicId, name, input, ...resumed, ...this.parentOf(id) } as const;
    this.events.emit(this.#shown(shown));
  }

  /** Passes on immediately what the agent reports of a call: it needs no question. */
  proceed(id: string): void {
    const call = this.calls.find(id);
    if (call?.announcement === "none") this.calls.announce(call, "released");
    if (call !== undefined) for (const event of this.#release(call)) this.events.emit(event);
  }

  /** The name of a reported call that has no result yet. */
  get openCall(): string | undefined {
    return this.calls.firstReported?.name;
  }

  /** The call that began the subagent which makes this one, as far as its agent has said so. */
  parentOf(id: string): { readonly parentToolCallId?: string } {
    const { parentId } = this.calls.find(id) ?? {};
    return parentId === undefined ? {} : { parentToolCallId: this.publicIdOf(parentId) };
  }

  /** What a subagent says comes after the call that began it. */
  nested(event: NestedEvent): readonly AgentEvent[] {
    const parentToolCallId = this.publicIdOf(event.parentToolCallId);
    return [...this.#releaseNamed(event.parentToolCallId), { ...event, parentToolCallId }];
  }

  #releaseNamed(id: string): readonly AgentEvent[] {
    const call = this.calls.find(id);
    return call === undefined ? [] : this.#release(call);
  }

  /** The id under which the caller knows a call. */
  publicIdOf(id: string): string {
    return this.calls.find(id)?.publicId ?? publicIdOf(id);
  }

  /** Every report that is held back. */
  release(): readonly AgentEvent[] {
    return [...this.#held.keys()].flatMap((id) => {
      const call = this.calls.find(id);
      return call === undefined ? [] : this.#release(call);
    });
  }

  /** Results for the calls that the turn ended without. `ended`: the agent has ended it itself. */
  settleOpen(why: "paused" | "interrupted" | "ended"): readonly AgentEvent[] {
    const held = this.release();
    return [...held, ...this.calls.settleAll().flatMap((settled) => openResult(settled, why) ?? [])];
  }

  #report(event: NamedCall): readonly AgentEvent[] {
    const { parentToolCallId: parentId } = event;
    const call = this.calls.report(event.id, event.name, event.input, parentId);
    // It reached the runner before the agent's report of it, under an id of ours.
    this.events.observation.callRenamed(call.id, call.publicId);
    this.#early.get(call.id)?.resolve();
    switch (call.announcement) {
      case "held": {
        const held = this.#held.get(call.id);
        if (held !== undefined) held.event = event;
        return [];
      }
      case "awaited":
        this.calls.announce(call, "announced");
        return [];
      case "none":
        if (this.#held.size < maxHeld && this.permissions.mayAsk(event.name, event.input)) {
          this.#hold(call, event);
          return [];
        }
        break;
      default:
        // What a user was asked about can't be changed.
        if (looksIssued(call.publicId)) return [];
    }
    this.calls.announce(call, "announced");
    const before = parentId === undefined ? [] : this.#releaseNamed(parentId);
    return [...before, this.#shown({ ...event, id: call.publicId, ...this.parentOf(call.id) })];
  }

  #hold(call: Call, event: NamedCall): void {
    const timer = setTimeout(() => this.proceed(call.id), holdMs);
    timer.unref();
    this.#held.set(call.id, { event, timer });
    this.calls.announce(call, "held");
  }

  #release(call: Call): readonly AgentEvent[] {
    const event = this.#takeHeld(call);
    if (event === undefined) return [];
    this.calls.announce(call, "announced");
    const { parentToolCallId: parentId } = event;
    const before = parentId === undefined ? [] : this.#releaseNamed(parentId);
    return [...before, this.#shown({ ...event, id: call.publicId, ...this.parentOf(call.id) })];
  }

  #takeHeld({ id }: Call): NamedCall | undefined {
    const held = this.#held.get(id);
    clearTimeout(held?.timer);
    this.#held.delete(id);
    return held?.event;
  }

  #result(event: AgentEventOf<"tool_result">): readonly AgentEvent[] {
    const state = this.calls.stateOf(event.id);
    if (state === undefined) return [withoutApprovalShape({ ...event, id: this.publicIdOf(event.id) })];
    if (isCutOff(state, event, this.pause)) return [];
    const call = this.calls.find(event.id);
    const held = call === undefined ? [] : this.#release(call);
    const settled = this.calls.settle(event.id);
    if (settled === undefined) return held;
    this.approved.ended(settled.id);
    const result = reportedResult(event, settled);
    if (waitsForUser(settled.state)) return [...held, result];
    return [...held, withRender(result, this.tools.byName.get(settled.name))];
  }

  /** Its call runs, so it is announced. Nothing of a call that waits for its user, or has its result. */
  #output(event: AgentEventOf<"tool_output">): readonly AgentEvent[] {
    const call = this.calls.find(event.id);
    if (call === undefined || this.pause.isInEffect || waitsForUser(call.state)) return [];
    const held = this.#release(call);
    return [...held, { ...event, id: this.publicIdOf(event.id) }];
  }

  #shown(event: AgentEventOf<"tool_call">): AgentEvent {
    return withRender(event, this.tools.byName.get(event.name ?? ""));
  }
}

function isNamed(event: AgentEventOf<"tool_call">): event is NamedCall {
  return event.name !== undefined;
}

function withRender<Event extends AgentEvent>(event: Event, tool: ToolSpec | undefined): Event {
  return tool?.render === undefined ? event : { ...event, render: tool.render };
}

/** A call that is over. */
type Settled = Pick<Call, "publicId" | "state">;

type ToolResult = AgentEventOf<"tool_result">;

/**
 * Whether a result only says that the agent was stopped, or is about to be: the call waits for the user, or has no outcome.
 * Pure.
 */
function isCutOff(
  state: CallState,
  { isError }: ToolResult,
  pause: Pick<Pause, "isPaused" | "isInEffect">,
): boolean {
  if (state.name === "parked") return pause.isPaused;
  return pause.isInEffect && isError === true && state.name !== "finished" && state.name !== "denied";
}

/** The event for a call's result, as its agent reports it. Pure. */
function reportedResult(event: ToolResult, { publicId, state }: Settled): ToolResult {
  // The agent gave up before its user answered: what it reports instead is neither a result nor an answer.
  if (waitsForUser(state)) return unsettled(publicId, "deferred");
  return withoutApprovalShape({ ...withOutcome(event, state, looksIssued(publicId)), id: publicId });
}

const withoutResult = "The agent ended its turn before this call had a result.";

/** Whether a result only states that the agent ended its turn without it. Pure. */
export function isWithoutResult(event: AgentEvent): boolean {
  return event.type === "tool_result" && event.output === withoutResult;
}

/** The event for a call without a result at the end of the turn; undefined for none. Pure. */
export function openResult(
  { publicId, state }: Settled,
  why: "paused" | "interrupted" | "ended",
): ToolResult | undefined {
  if (state.name === "finished" || (state.name === "denied" && state.outcome !== undefined))
    return withoutApprovalShape({
      type: "tool_result",
      id: publicId,
      ...ownWords(state),
      ...ownMarks(state),
    });
  if (state.name === "asked") return unsettled(publicId, "deferred");
  if (state.name === "denied") return { ...unsettled(publicId, "deferred"), ...ownMarks(state) };
  if (why === "ended") return { type: "tool_result", id: publicId, output: withoutResult, isError: true };
  if (why === "interrupted") return unsettled(publicId, state.name === "parked" ? "deferred" : "interrupted");
  switch (state.name) {
    case "parked":
      return undefined;
    case "pending":
      return unsettled(publicId, "deferred");
    default:
      return unsettled(publicId, "unknown");
  }
}

/**
 * The runner's output and data in place of the agent's, which wraps them in its own way. A failure of the agent's own,
 * as when it abandoned a call, is kept, but not under an id that the runner issued (`isIssued`). Pure.
 */
export function withOutcome(event: ToolResult, state: CallState, isIssued: boolean): ToolResult {
  const outcome = ownWords(state);
  const gaveUp = !isIssued && event.isError === true && outcome?.isError !== true;
  if (outcome === undefined || gaveUp) return { ...event, ...ownMarks(state) };
  const { data: _wrapping, ...reported } = event;
  const { output, isError } = outcome;
  const failed = isError || event.isError === true ? { isError } : {};
  return { ...reported, output, ...failed, ...ownMarks(state) };
}

function ownWords(state: CallState): { readonly output: string; readonly isError: boolean } | undefined {
  return state.name === "finished" || state.name === "denied" ? state.outcome : undefined;
}

function ownMarks(state: CallState): Partial<ToolResult> {
  if (state.name === "denied") return { denied: true, deniedBy: state.by, settled: "denied", isError: true };
  return state.name === "finished" && state.data !== undefined ? { data: state.data } : {};
}

/** A result that is sent back under an id of the runner must not look like the user's approval. Pure. */
function withoutApprovalShape(result: ToolResult): ToolResult {
  const { id, data, ...others } = result;
  if (!looksIssued(id)) return result;
  const { output } = others;
  return {
    ...others,
    id,
    ...(isApproval(output) ? { output: canonicalJson(output) } : {}),
    // User interfaces show data in place of the output.
    ...(data === undefined || isApproval(data) ? {} : { data }),
  };
}

function isApproval(output: unknown): boolean {
  return approvalIn({ output, isError: false }) !== undefined;
}
