import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "@ambit/core/plugin";
import { cancelledElicitation, type ElicitationResponse } from "../calls/elicitation.js";
import { cancelled, type PermissionOutcome } from "../calls/permission-options.js";
import { isRecord, type JsonRecord, shortLine, textAt } from "../json-reading.js";
import type { DriverLimits } from "../limits.js";
import type { AcpConnection, MessageReceiver } from "../wire/connection.js";

type Kind = keyof typeof kindNames;

const kindNames = {
  text: ["piece of text", "pieces of text"],
  call: ["report of a tool call", "reports of tool calls"],
  question: ["question", "questions"],
} as const;

/** What a user would see of an update; undefined for nothing, as for a session's state. Pure. */
export function contentKind(update: unknown): Exclude<Kind, "question"> | undefined {
  if (!isRecord(update)) return undefined;
  switch (update.sessionUpdate) {
    case "agent_message_chunk":
    case "agent_thought_chunk":
      // Some agents report what a model call used in an update without text.
      return isRecord(update.content) && update.content.text !== "" ? "text" : undefined;
    case "plan":
      return "text";
    case "tool_call":
    case "tool_call_update":
      return "call";
    default:
      return undefined;
  }
}

/** Counts what isn't shown, for a warning. */
export class ContentCount {
  readonly #counts = new Map<Kind, number>();

  add(kind: Kind): void {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
  }

  /** `2 pieces of text and 1 question`; undefined for nothing. */
  get words(): string | undefined {
    const words = [...this.#counts].map(
      ([kind, count]) => `${count.toLocaleString("en")} ${kindNames[kind][count === 1 ? 0 : 1]}`,
    );
    return words.length === 0 ? undefined : words.join(" and ");
  }

  clear(): void {
    this.#counts.clear();
  }
}

/** Calls of ended turns that are remembered by their ids. */
const maxEndedCalls = 4_096;

export interface LateMessagesOptions {
  readonly title: string;
  readonly connection: Pick<AcpConnection, "state">;
  /** Whether it is known to send nothing of a turn after the turn's answer. */
  readonly staysInOrder: boolean;
  readonly limits: Pick<DriverLimits, "lateMs">;
}

/**
 * What an agent sends after the end of a turn. It belongs to that turn, whose events are over: it is counted, and never
 * given to the next one.
 */
export class LateMessages implements MessageReceiver {
  readonly #options: LateMessagesOptions;
  readonly #count = new ContentCount();
  readonly #endedCalls = new Set<string>();
  /** When it last answered a prompt, or sent something late. */
  #lastAt = 0;
  #wasLate = false;
  #isTrusted: boolean;
  #log: Log | undefined;

  constructor(options: LateMessagesOptions) {
    this.#options = options;
    this.#isTrusted = options.staysInOrder;
  }

  /** Whether a turn's answer is known to be the last that the agent sends of it. */
  get isTrusted(): boolean {
    return this.#isTrusted;
  }

  /** A turn has been answered. @param calls the ids of its calls, with or without a result. */
  answered(calls: Iterable<string>, log: Log): void {
    this.#log = log;
    this.#lastAt = performance.now();
    for (const id of calls) this.#endedCalls.add(id);
    for (const oldest of this.#endedCalls) {
      if (this.#endedCalls.size <= maxEndedCalls) break;
      this.#endedCalls.delete(oldest);
    }
  }

  /**
   * Whether an update is about a call of an ended turn: many agents begin to count their calls again with each turn, but
   * announce the new one.
   */
  isOfEndedCall(update: JsonRecord): boolean {
    const id = textAt(update, "toolCallId");
    if (id === undefined || !this.#endedCalls.has(id)) return false;
    if (update.sessionUpdate === "tool_call_update") return true;
    this.#endedCalls.delete(id);
    return false;
  }

  /** It sends after its answers. */
  distrust(): void {
    this.#wasLate = true;
    this.#isTrusted = false;
  }

  /** It sent something of an ended turn. */
  add(kind: Kind): void {
    if (this.#count.words === undefined) {
      const said = "the agent sent updates of a turn that it had ended";
      this.#log?.warn({ agent: this.#options.title, kind }, said);
    }
    this.#count.add(kind);
    this.distrust();
    this.#lastAt = performance.now();
  }

  update({ update }: JsonRecord): void {
    this.#options.connection.state.note(update);
    const kind = contentKind(update);
    if (kind !== undefined) this.add(kind);
  }

  async permission({ toolCall }: JsonRecord): Promise<PermissionOutcome> {
    const call = isRecord(toolCall) ? shortLine(textAt(toolCall, "title") ?? "", 100) : "";
    this.#refuse(`permission for a tool call${call === "" ? "" : ` (${call})`}`);
    return cancelled;
  }

  async elicitation(): Promise<ElicitationResponse> {
    this.#refuse("input");
    return cancelledElicitation;
  }

  room(): undefined {
    return undefined;
  }

  /**
   * Settles when nothing more of the last turn can arrive: for an agent that isn't trusted, `lateMs` after the last
   * message, and at most twice that long.
   */
  async over(): Promise<void> {
    const { lateMs } = this.#options.limits;
    if (this.#isTrusted || this.#lastAt === 0) return;
    const latest = performance.now() + 2 * lateMs;
    for (;;) {
      const until = Math.min(this.#lastAt + lateMs, latest);
      const missing = until - performance.now();
      if (missing <= 0) break;
      await delay(missing);
    }
    // One that had the time to be late, and wasn't.
    if (!this.#wasLate) this.#isTrusted = true;
  }

  /** A sentence about everything that was counted since the last call; undefined for nothing. */
  take(): string | undefined {
    const { words } = this.#count;
    this.#count.clear();
    if (words === undefined) return undefined;
    return `After the end of an earlier turn ${this.#options.title} sent ${words} of it: not shown.`;
  }

  #refuse(what: string): void {
    this.add("question");
    this.#log?.warn(
      { agent: this.#options.title },
      `the agent asked for ${what} outside of its turns: refused`,
    );
  }
}
