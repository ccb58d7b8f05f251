import type { AgentEvent, EventRecord, FailedResult, RunResult } from "@ambit/client";
import { AmbitError } from "@ambit/client";
import { clientOf, type RunPlace } from "./client.js";
import { RunStages, type Stage } from "./run-stages.js";
import { sessionFetch } from "./session.js";

type EventOf<Type extends AgentEvent["type"]> = Extract<AgentEvent, { type: Type }>;
export type Change = NonNullable<EventOf<"tool_result">["changes"]>[number];

/** What all entries have. */
interface EntryPlace {
  readonly key: string;
  /** Grows with each change of the entry. */
  version: number;
  /** Milliseconds since the epoch; undefined in a run that was stored without times. */
  readonly at: number | undefined;
  /** How many calls of subagents it is within. */
  readonly depth: number;
}

/** One thing that happened in a run, as a reader sees it. */
export type Entry = EntryPlace &
  (
    | { readonly kind: "message" | "thought"; text: string; isOpen: boolean }
    | {
        readonly kind: "call";
        readonly id: string;
        readonly name: string;
        /** A command that prepared the environment, and no call of the agent. */
        readonly isSetup: boolean;
        readonly input: unknown;
        printed: string;
        result?: EventOf<"tool_result">;
        question?: Question;
        endedAt?: number;
      }
    | { readonly kind: "question"; readonly question: Question }
    | { readonly kind: "decision"; readonly decision: EventOf<"boundary_decision"> }
    | { readonly kind: "file"; readonly file: EventOf<"file"> }
    | { readonly kind: "error"; readonly message: string }
    | { readonly kind: "note"; readonly title: string; readonly data: unknown }
  );

/** An entry that a reader wants to see. Another object is another wish, also for the same entry. */
export interface ChosenEntry {
  readonly key: string;
}

export interface Question {
  readonly id: string;
  readonly kind: EventOf<"interaction_request">["kind"];
  readonly payload: NonNullable<EventOf<"interaction_request">["payload"]>;
  state: "open" | "answered" | "expired";
  answer?: EventOf<"interaction_response">["payload"];
}

export interface PlanEntry {
  readonly content: string;
  readonly status: string;
}

/** A run as far as it was read. */
export interface RunSnapshot {
  readonly entries: readonly Entry[];
  readonly plan: readonly PlanEntry[];
  readonly events: number;
  /** Empty in a run that was stored without times. */
  readonly stages: readonly Stage[];
  /** What is done before and after the agent is at work, in words. */
  readonly stage: string | undefined;
  readonly usage: EventOf<"usage"> | undefined;
  readonly result: RunResult | FailedResult | undefined;
  /** Why it can't be read. */
  readonly error: AmbitError | undefined;
  readonly isLive: boolean;
}

const empty: RunSnapshot = {
  entries: [],
  plan: [],
  events: 0,
  stages: [],
  stage: undefined,
  usage: undefined,
  result: undefined,
  error: undefined,
  isLive: true,
};

/** Follows one run, and groups its events into entries. Listeners hear of a change once per frame. */
export class RunLog {
  #snapshot: RunSnapshot = empty;
  readonly #entries: Entry[] = [];
  readonly #calls = new Map<string, Extract<Entry, { kind: "call" }>>();
  readonly #texts = new Map<string, Extract<Entry, { kind: "message" | "thought" }>>();
  readonly #questions = new Map<string, Question>();
  #plan: readonly PlanEntry[] = [];
  #usage: EventOf<"usage"> | undefined;
  #events = 0;
  readonly #listeners = new Set<() => void>();
  #isScheduled = false;
  readonly #left = new AbortController();
  readonly #stages = new RunStages();

  constructor(place: RunPlace) {
    void this.#follow(place);
  }

  readonly subscribe = (listener: () => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly snapshot = () => this.#snapshot;

  /** Ends the reading, not the run. */
  leave(): void {
    this.#left.abort();
  }

  async #follow(place: RunPlace): Promise<void> {
    const { signal } = this.#left;
    // A client gives up on what is gone, and begins again after anything else.
    const gone = () => new Response(null, { status: 410 });
    const send: typeof fetch = async (input, init) => {
      if (signal.aborted) return gone();
      try {
        return await sessionFetch(input, { ...init, signal });
      } catch (error) {
        if (signal.aborted) return gone();
        throw error;
      }
    };
    const run = clientOf(place, send).attach(place.runId, { reconnectTimeoutMs: 24 * 60 * 60_000 });
    try {
      for await (const record of run.records()) {
        this.#read(record);
        this.#publish({});
      }
      this.#publish({ result: await run.result, isLive: false });
    } catch (error) {
      if (signal.aborted) return;
      const failure = error instanceof AmbitError ? error : undefined;
      this.#publish(
        failure?.result === undefined
          ? { error: failure ?? unreadable(error), isLive: false }
          : { result: failure.result, isLive: false },
      );
    }
  }

  #publish(change: Partial<RunSnapshot>): void {
    const isLast = change.isLive === false;
    if (change.result !== undefined) this.#conclude(change.result);
    this.#snapshot = { ...this.#snapshot, ...change };
    if (this.#isScheduled && !isLast) return;
    this.#isScheduled = true;
    const show = () => {
      this.#isScheduled = false;
      this.#snapshot = {
        ...this.#snapshot,
        entries: [...this.#entries],
        plan: this.#plan,
        events: this.#events,
        stages: this.#stages.all.map((stage) => ({ ...stage })),
        stage: this.#stages.current,
        usage: this.#usage,
      };
      for (const listener of this.#listeners) listener();
    };
    if (isLast) show();
    // A page in the background has no frames.
    else setTimeout(show, document.hidden ? 500 : 16);
  }

  #conclude({ error, receipt }: RunResult | FailedResult): void {
    if (receipt !== undefined) this.#stages.conclude(receipt);
    // The outcome says it, with its fix.
    const told = this.#entries.findLastIndex((entry) => entry.kind === "error" && entry.message === error);
    if (told !== -1) this.#entries.splice(told, 1);
  }

  #add(entry: Entry): void {
    this.#entries.push(entry);
  }

  #read({ event, at: time }: EventRecord): void {
    this.#events += 1;
    const at = time === undefined ? undefined : Date.parse(time);
    if (at !== undefined) this.#stages.read(event, at);
    const place = { key: `${this.#events}`, version: 0, at, depth: this.#depthOf(event) };
    switch (event.type) {
      case "message":
      case "thought":
        this.#add({ ...place, kind: event.type, text: event.text, isOpen: false });
        break;
      case "message_start":
      case "thought_start": {
        const kind = event.type === "message_start" ? "message" : "thought";
        const entry = { ...place, kind, text: "", isOpen: true } as const;
        const text = { ...entry };
        this.#texts.set(event.id, text);
        this.#add(text);
        break;
      }
      case "message_delta":
      case "thought_delta": {
        const text = this.#texts.get(event.id);
        if (text === undefined) break;
        text.text += event.delta;
        text.version += 1;
        break;
      }
      case "message_end":
      case "thought_end": {
        const text = this.#texts.get(event.id);
        if (text === undefined) break;
        text.isOpen = false;
        text.version += 1;
        break;
      }
      case "tool_call":
        this.#call(place, event);
        break;
      case "tool_output": {
        const call = this.#calls.get(event.id);
        if (call === undefined) break;
        call.printed += event.delta;
        call.version += 1;
        break;
      }
      case "tool_result": {
        const call = this.#calls.get(event.id) ?? this.#call(place, { type: "tool_call", id: event.id });
        call.result = event;
        if (at !== undefined) call.endedAt = at;
        call.version += 1;
        break;
      }
      case "interaction_request":
        this.#ask(place, event);
        break;
      case "interaction_response":
      case "interaction_expired":
        this.#settle(event);
        break;
      case "boundary_decision":
        this.#add({ ...place, kind: "decision", decision: event });
        break;
      case "file":
        this.#add({ ...place, kind: "file", file: event });
        break;
      case "error":
        this.#add({ ...place, kind: "error", message: event.message });
        break;
      case "mcp_server_failed": {
        const message = `The MCP server ${event.serverName} can't be used: ${event.message}`;
        this.#add({ ...place, kind: "error", message });
        break;
      }
      case "usage":
        this.#usage = event;
        break;
      case "data":
        if (event.name === "plan") this.#plan = planIn(event.data);
        else if (event.name === "setup") this.#setUp(place, event.data);
        else if (event.name !== "run" && event.name !== "stage")
          this.#add({ ...place, kind: "note", title: event.name, data: event.data });
        break;
      case "turn":
      case "commands":
      case "mode":
      case "configuration":
      case "done":
        break;
    }
  }

  #depthOf(event: AgentEvent): number {
    const parent = "parentToolCallId" in event ? event.parentToolCallId : undefined;
    return parent === undefined ? 0 : (this.#calls.get(parent)?.depth ?? 0) + 1;
  }

  #call(place: EntryPlace, { id, name = "tool", input }: EventOf<"tool_call">, isSetup = false) {
    const call: Extract<Entry, { kind: "call" }> = {
      ...place,
      kind: "call",
      id,
      name,
      isSetup,
      input,
      printed: "",
    };
    this.#calls.set(id, call);
    this.#add(call);
    return call;
  }

  /** A command of the setup, as the call that it looks like. */
  #setUp(place: EntryPlace, data: unknown): void {
    const { state, index, command, text, exitCode }: Readonly<Record<string, unknown>> = Object(data);
    const id = `setup ${index}`;
    if (state === "waiting")
      this.#add({ ...place, kind: "note", title: "waits for another run's setup", data });
    if (state === "started")
      this.#call(place, { type: "tool_call", id, name: "setup", input: { command } }, true);
    const call = this.#calls.get(id);
    if (call === undefined) return;
    if (state === "output") call.printed += String(text);
    if (state === "ended") {
      call.result = { type: "tool_result", id, output: call.printed, isError: exitCode !== 0 };
      if (place.at !== undefined) call.endedAt = place.at;
    }
    call.version += 1;
  }

  #ask(place: EntryPlace, event: EventOf<"interaction_request">): void {
    const { id, kind, payload = {} } = event;
    const question: Question = { id, kind, payload, state: "open" };
    this.#questions.set(id, question);
    const call = this.#calls.get(payload.toolCallId ?? id);
    if (call === undefined) this.#add({ ...place, kind: "question", question });
    else {
      call.question = question;
      call.version += 1;
    }
  }

  #settle(event: EventOf<"interaction_response"> | EventOf<"interaction_expired">): void {
    const question = this.#questions.get(event.id);
    if (question === undefined) return;
    question.state = event.type === "interaction_response" ? "answered" : "expired";
    if (event.type === "interaction_response") question.answer = event.payload;
    const shown = this.#entries.find(
      (entry) => (entry.kind === "call" || entry.kind === "question") && entry.question === question,
    );
    if (shown !== undefined) shown.version += 1;
  }
}

function planIn(data: unknown): readonly PlanEntry[] {
  const entries = typeof data === "object" && data !== null && "entries" in data ? data.entries : [];
  if (!Array.isArray(entries)) return [];
  return entries.map((entry) => ({ content: String(entry?.content), status: String(entry?.status) }));
}

function unreadable(cause: unknown): AmbitError {
  return new AmbitError("The run can't be read: reload the page", {
    code: "invalid_response",
    retryable: true,
    cause,
  });
}
