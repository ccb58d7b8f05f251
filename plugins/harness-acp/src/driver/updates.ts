import { isDeepStrictEqual } from "node:util";
import {
  type AgentEvent,
  type AgentEventOf,
  isJsonObject,
  type JsonObject,
  type Log,
  TextEnd,
} from "@ambit/core/plugin";
import type { Profile, ToolCallView, ToolIdentity } from "../profiles/profile.js";
import { costOf } from "./answers.js";
import { type CallLimits, parentCallIn, ReportedCalls } from "./calls.js";
import { shortLine, textAt, valueAt } from "./json-reading.js";

interface UpdateReaderOptions extends CallLimits {
  readonly profile: Pick<Profile, "title" | "quirks">;
  /** @param weight about how many characters the event holds, if that isn't its text's length. */
  emit(event: AgentEvent, weight?: number): void;
  identify(call: ToolCallView): ToolIdentity;
  readonly state: Pick<SessionState, "changed">;
  readonly log: Log;
}

/**
 * Turns the `session/update`s of one turn into events. It reads only what it needs and trusts no shape: unknown updates
 * are skipped and logged at debug level, since newer agents send more than this driver knows.
 */
export class UpdateReader {
  readonly tools: ReportedCalls;
  readonly #blocks: TextBlocks;
  readonly #options: UpdateReaderOptions;
  /** Whether the agent has done anything that a user sees. */
  #spoke = false;
  cost: number | undefined;
  /** A failure of this turn that the agent reported outside the protocol. */
  failure: string | undefined;
  /** The end of its last text, for agents that report a failure only as text. */
  readonly #lastText = new TextEnd(300);

  constructor(options: UpdateReaderOptions) {
    this.#options = options;
    this.#blocks = new TextBlocks(options.emit);
    this.tools = new ReportedCalls({
      ...options,
      title: options.profile.title,
      emit: (event, weight, { id, parent }) => {
        this.#blocks.close(parent);
        // A subagent ends with the call that began it.
        if (event.type === "tool_result") this.#blocks.close(id);
        options.emit(event, weight);
      },
    });
  }

  get idle(): boolean {
    return !this.#spoke && !this.tools.any;
  }

  /** @param size characters of the message that the update came in. */
  read(update: unknown, size: number): void {
    if (!isJsonObject(update)) return;
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        if (!this.#isReportedFailure(update)) this.#chunk("message", update);
        break;
      case "agent_thought_chunk":
        this.#chunk("thought", update);
        break;
      case "tool_call":
      case "tool_call_update":
        this.tools.upsert(update, size);
        break;
      case "plan":
        this.#spoke = true;
        this.#emit({ type: "data", name: "plan", data: { entries: update.entries ?? [] } }, update, size);
        break;
      case "notice": {
        const data = { severity: update.severity, title: update.title };
        this.#emit({ type: "data", name: "notice", data, transient: true }, update, size);
        break;
      }
      case "usage_update":
        this.cost = costOf(update) ?? this.cost;
        break;
      case "session_info_update":
        this.failure ??= this.failureIn(update._meta);
        break;
      case "available_commands_update":
      case "current_mode_update":
      case "config_option_update": {
        const event = this.#options.state.changed(update);
        // It may come in the middle of a text.
        if (event !== undefined) this.#options.emit(event, size);
        break;
      }
      case "user_message_chunk":
        break;
      default:
        this.#unknown(update, size);
    }
  }

  /** The failure that `_meta` reports, in the agent's words. */
  failureIn(meta: unknown): string | undefined {
    for (const { path, failed } of this.#options.profile.quirks.failureMeta) {
      const value = valueAt(meta, ...path);
      if (failed === undefined ? isJsonObject(value) : value === failed) {
        const words = isJsonObject(value) ? textAt(value, "title") : undefined;
        return words ?? (shortLine(this.#lastText.text) || failed || "it gives no reason");
      }
    }
    return undefined;
  }

  /** Ends the open text block and announces a call that still waits. */
  close(): void {
    this.tools.release();
    this.#blocks.closeAll();
  }

  /** Newer agents send more than this driver knows: passed on unchanged, for clients that understand it. */
  #unknown(update: JsonObject, size: number): void {
    const kind = textAt(update, "sessionUpdate");
    if (kind === undefined) return;
    this.#options.log.debug({ kind }, "the agent sent an update of unknown kind");
    this.#emit(
      { type: "data", name: `acp.${kind.slice(0, 100)}`, data: update, transient: true },
      update,
      size,
    );
  }

  /** A failure that an agent reports as text and marks as a failure. */
  #isReportedFailure({ _meta: meta, content }: JsonObject): boolean {
    const failure = meta === undefined ? undefined : this.failureIn(meta);
    if (failure === undefined) return false;
    const words = isJsonObject(content) ? (textAt(content, "text") ?? "") : "";
    this.failure ??= shortLine(words) || failure;
    return true;
  }

  #chunk(kind: "message" | "thought", update: JsonObject): void {
    const { content } = update;
    if (!isJsonObject(content)) return;
    if (content.type === "text") {
      const text = textAt(content, "text") ?? "";
      // Some agents report what a model call used in an update without text.
      if (text === "") return;
      this.tools.release();
      this.#spoke = true;
      const parent = parentCallIn(update);
      if (this.#options.profile.quirks.failureMeta.length > 0 && parent === undefined)
        this.#lastText.push(text);
      this.#blocks.add({ kind, text, source: textAt(update, "messageId"), parent });
      return;
    }
    this.tools.release();
    const file = fileIn(content);
    if (file === undefined) return;
    this.#spoke = true;
    this.#emit(file, update);
  }

  #emit(event: ContentEvent, update: JsonObject, weight?: number): void {
    const parent = parentCallIn(update);
    this.tools.release();
    this.#blocks.close(parent);
    this.#options.emit(parent === undefined ? event : { ...event, parentToolCallId: parent }, weight);
  }
}

type ContentEvent = Extract<AgentEvent, { type: "data" | "file" }>;

function fileIn(content: JsonObject): ContentEvent | undefined {
  const mediaType = textAt(content, "mimeType") ?? "application/octet-stream";
  const uri = textAt(content, "uri");
  const data = textAt(content, "data");
  if (data !== undefined) return { type: "file", url: `data:${mediaType};base64,${data}`, mediaType };
  return uri === undefined ? undefined : { type: "file", url: uri, mediaType };
}

type BlockKind = "message" | "thought";

interface OpenBlock {
  readonly kind: BlockKind;
  readonly id: string;
  readonly source: string | undefined;
}

/** A chunk of text. */
interface Chunk {
  readonly kind: BlockKind;
  readonly text: string;
  /** The agent's id of the message, if it sends one: another message is another block. */
  readonly source: string | undefined;
  /** The call that began the subagent which says it; undefined for the agent itself. */
  readonly parent: string | undefined;
}

/**
 * Merges consecutive chunks into blocks: `_start`, `_delta`…, `_end`. The agent and each of its subagents say one after the
 * other; they may do so at the same time.
 */
class TextBlocks {
  /** The key is the call that began the subagent; undefined for the agent itself. */
  readonly #open = new Map<string | undefined, OpenBlock>();
  #count = 0;

  constructor(readonly emit: (event: AgentEvent) => void) {}

  add({ kind, text, source, parent }: Chunk): void {
    if (text === "") return;
    let open = this.#open.get(parent);
    if (open === undefined || open.kind !== kind || (source !== undefined && source !== open.source)) {
      this.close(parent);
      this.#count += 1;
      open = { kind, id: `${kind}-${this.#count}`, source };
      this.#open.set(parent, open);
      const type = kind === "message" ? "message_start" : "thought_start";
      this.emit({ type, id: open.id, ...(parent === undefined ? {} : { parentToolCallId: parent }) });
    }
    this.emit({ type: kind === "message" ? "message_delta" : "thought_delta", id: open.id, delta: text });
  }

  closeAll(): void {
    for (const parent of [...this.#open.keys()]) this.close(parent);
  }

  /** Any other event of the agent, or of the same subagent, ends its block. */
  close(parent: string | undefined): void {
    const open = this.#open.get(parent);
    if (open === undefined) return;
    this.#open.delete(parent);
    this.emit({ type: open.kind === "message" ? "message_end" : "thought_end", id: open.id });
  }
}

type StateEvent = AgentEventOf<"commands" | "mode" | "configuration">;

/** Commands, or options of the configuration. Further ones are left out. */
const maxEntries = 256;
/** Characters of an id, a name or a value; an entry with a longer one is left out. */
const maxNameLength = 256;
/** Characters of a description; a longer one is left out. */
const maxDescriptionLength = 1_024;

/**
 * What an agent says about its session: its commands, its mode, its configuration. Agents repeat themselves, and say some
 * of it between two turns: each turn reports what has changed since the last report.
 */
export class SessionState {
  readonly #current = new Map<StateEvent["type"], StateEvent>();
  readonly #unreported = new Set<StateEvent["type"]>();

  /** The event for an update; undefined if it changes nothing, or isn't about the session's state. */
  changed(update: unknown): StateEvent | undefined {
    const event = isJsonObject(update) ? stateIn(update) : undefined;
    if (event === undefined || isDeepStrictEqual(event, this.#current.get(event.type))) return undefined;
    this.#current.set(event.type, event);
    return event;
  }

  /** An update outside of a turn. */
  note(update: unknown): void {
    const event = this.changed(update);
    if (event !== undefined) this.#unreported.add(event.type);
  }

  /** What was noted so far of the mode and the configuration is what this run has set itself. */
  begin(): void {
    this.#unreported.delete("mode");
    this.#unreported.delete("configuration");
  }

  /** What was noted since the last turn. */
  take(): readonly StateEvent[] {
    const events = [...this.#current.values()].filter(({ type }) => this.#unreported.has(type));
    this.#unreported.clear();
    return events;
  }
}

/** Pure. */
export function stateIn(update: JsonObject): StateEvent | undefined {
  switch (update.sessionUpdate) {
    case "available_commands_update":
      return { type: "commands", commands: entries(update.availableCommands).flatMap(commandIn) };
    case "current_mode_update": {
      const mode = name(textAt(update, "currentModeId"));
      return mode === undefined ? undefined : { type: "mode", mode };
    }
    case "config_option_update":
      return { type: "configuration", options: entries(update.configOptions).flatMap(optionIn) };
    default:
      return undefined;
  }
}

function commandIn(command: JsonObject): AgentEventOf<"commands">["commands"] {
  const named = name(textAt(command, "name"));
  if (named === undefined) return [];
  const description = text(textAt(command, "description"));
  const hint = text(valueAt(command, "input", "hint"));
  return [
    {
      name: named,
      description,
      hint,
    },
  ];
}

function optionIn(option: JsonObject): AgentEventOf<"configuration">["options"] {
  const id = name(textAt(option, "id"));
  const { currentValue } = option;
  const value = typeof currentValue === "boolean" ? currentValue : name(currentValue);
  if (id === undefined || value === undefined) return [];
  const title = name(option.name);
  const category = name(option.category);
  return [
    {
      id,
      name: title,
      category,
      value,
    },
  ];
}

function entries(list: unknown): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter(isJsonObject).slice(0, maxEntries) : [];
}

function name(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" && value.length <= maxNameLength ? value : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" && value.length <= maxDescriptionLength
    ? value
    : undefined;
}
