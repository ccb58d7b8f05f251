import { randomUUID } from "node:crypto";
import type { AgentEvent, AgentEventOf } from "@ambit/core/contract";
import { callKey } from "../../tools/call-ledger.js";
import { unsettled } from "../../tools/settling.js";
import { looksIssued } from "./call-ids.js";

/** A call as it is announced. */
export interface AnnouncedCall {
  /** The agent's id where it is known, else ours. */
  readonly toolCallId: string;
  readonly name: string;
  readonly input: unknown;
}

export type NamedCall = AgentEventOf<"tool_call"> & { readonly name: string };

interface Entry {
  /** Under which it is told. */
  readonly publicId: string;
  /** The agent's report, while it is held back. */
  held?: { event: NamedCall; readonly timer: NodeJS.Timeout };
  /** Of name and arguments, while a call that we announced waits for the agent's own report of it. */
  awaits?: string;
  told: boolean;
  /** Whether its user is being asked. */
  asking: boolean;
}

/** Milliseconds that a reported call may wait for its question or its execution. */
const holdMs = 1_000;
/** Calls that are held back at once: each is kept whole. Further ones are told at once. */
const mostHeld = 32;

/**
 * Under which id each call is announced, and when. A call that its user is asked about has an id that the runner
 * issued, so that the answer can be told from an invented one; every other call has the agent's, which never looks like
 * one of ours. So a call that may have to ask is held back until it asks, runs or ends, for a second at most.
 */
export class Announcements {
  /** By the agent's id, or ours where the agent hasn't reported the call. */
  readonly #entries = new Map<string, Entry>();
  /** The agent's ids of calls that we knew under another one first. */
  readonly #aliases = new Map<string, string>();
  #held = 0;

  constructor(
    /** For what is told apart from the agent's own events. */
    readonly emit: (event: AgentEvent) => void,
    /** Hears of a call that we announce before the agent reports it. */
    readonly onUnreported: (call: AnnouncedCall) => void,
  ) {}

  /** The id under which the runner knows a call that the agent reports. */
  known(agentId: string): string {
    return this.#aliases.get(agentId) ?? agentId;
  }

  /** The agent's first report of a call that we announced before it makes its id known. */
  adopt({ id, name, input }: NamedCall): void {
    if (this.#entries.has(this.known(id))) return;
    const key = callKey(name, input);
    for (const [callId, { awaits }] of this.#entries) {
      if (awaits !== key) continue;
      this.#aliases.set(id, callId);
      return;
    }
  }

  /** The id under which a call is told. */
  idOf(callId: string): string {
    return this.#entries.get(callId)?.publicId ?? publicIdOf(callId);
  }

  /**
   * The agent reports a call, perhaps again.
   * @param mayAsk whether its user may have to be asked.
   * @returns what to tell now.
   */
  report(event: NamedCall, mayAsk: boolean): readonly AgentEvent[] {
    const id = this.known(event.id);
    const entry = this.#entries.get(id);
    if (entry !== undefined) {
      if (entry.held !== undefined) entry.held.event = event;
      // What we announced is its report; and what a user was asked can't be changed.
      else if (entry.awaits !== undefined) delete entry.awaits;
      else if (!looksIssued(entry.publicId)) {
        entry.told = true;
        return [{ ...event, id: entry.publicId }];
      }
      return [];
    }
    const fresh: Entry = { publicId: publicIdOf(id), told: false, asking: false };
    this.#entries.set(id, fresh);
    if (!mayAsk || this.#held >= mostHeld) {
      fresh.told = true;
      return [{ ...event, id: fresh.publicId }];
    }
    this.#held += 1;
    const timer = setTimeout(() => this.#emitAll(this.release(id)), holdMs);
    timer.unref();
    fresh.held = { event, timer };
    return [];
  }

  /**
   * A call is about to be dealt with: announces it, if that wasn't done.
   * @param issued the id under which its user is asked: it is announced under no other, as just the call that the
   * question is about.
   */
  announce(call: AnnouncedCall, issued?: string): void {
    const { toolCallId, name, input } = call;
    const entry = this.#entries.get(toolCallId);
    if (entry?.told === true && issued === undefined) return;
    if (entry?.told === true) this.emit(unsettled(entry.publicId, "moved"));
    if (entry !== undefined) this.#takeHeld(entry);
    const next: Entry = {
      publicId: issued ?? publicIdOf(toolCallId),
      told: true,
      asking: issued !== undefined,
    };
    if (entry === undefined) {
      next.awaits = callKey(name, input);
      this.onUnreported(call);
    }
    this.#entries.set(toolCallId, next);
    this.emit({ type: "tool_call", id: next.publicId, name, input });
  }

  /** The user answered: what the agent says of the call now is its result. */
  answered(callId: string): void {
    const entry = this.#entries.get(callId);
    if (entry !== undefined) entry.asking = false;
  }

  /** Tells at once what the agent reports of a call: it runs without asking. */
  proceed(callId: string): void {
    if (this.#entries.has(callId)) this.#emitAll(this.release(callId));
    else this.#entries.set(callId, { publicId: publicIdOf(callId), told: false, asking: false });
  }

  /** A held call as the agent reported it. */
  release(callId: string): readonly AgentEvent[] {
    const entry = this.#entries.get(callId);
    const event = entry === undefined ? undefined : this.#takeHeld(entry);
    return entry === undefined || event === undefined ? [] : [{ ...event, id: entry.publicId }];
  }

  /** Every held call: the turn is over. */
  releaseAll(): readonly AgentEvent[] {
    return [...this.#entries.keys()].flatMap((id) => this.release(id));
  }

  /** A call has its result. `asking`: it is none, since its user was asked and hasn't answered. */
  settle(callId: string): {
    readonly before: readonly AgentEvent[];
    readonly publicId: string;
    readonly asking: boolean;
  } {
    const before = this.release(callId);
    const publicId = this.idOf(callId);
    const asking = this.#entries.get(callId)?.asking === true;
    this.#entries.delete(callId);
    return { before, publicId, asking };
  }

  /** Holds a call back no longer. */
  #takeHeld(entry: Entry): NamedCall | undefined {
    if (entry.held === undefined) return undefined;
    const { event, timer } = entry.held;
    clearTimeout(timer);
    delete entry.held;
    entry.told = true;
    this.#held -= 1;
    return event;
  }

  #emitAll(events: readonly AgentEvent[]): void {
    for (const event of events) this.emit(event);
  }
}

/** The agent may choose its ids, but none that looks like one of ours. */
function publicIdOf(id: string): string {
  return looksIssued(id) ? `call-${randomUUID()}` : id;
}
