import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import {
  type AgentEvent,
  type FileChange,
  type FileLocation,
  HarnessFailed,
  isJsonObject,
  type JsonObject,
  type OwnTools,
  type PermissionQuestion,
  type ToolClass,
} from "@ambit/core/plugin";
import type { ToolCallView, ToolIdentity } from "../profiles/profile.js";
import { readInput } from "../profiles/tool-names.js";
import { numberAt, textAt, valueAt } from "./json-reading.js";

/** Limits on the calls of one turn that have no result yet. */
export interface CallLimits {
  readonly openCalls: number;
  /** Characters of all of them. */
  readonly openCallCharacters: number;
}

interface ReportedCallsOptions extends CallLimits {
  readonly title: string;
  /** @param weight about how many characters the event holds. @param call that it is about */
  emit(event: AgentEvent, weight: number, call: Pick<ReportedCall, "id" | "parent">): void;
  identify(call: ToolCallView): ToolIdentity;
}

/** How many finished calls are remembered by id, for late messages about them. */
const maxSettled = 4_096;

/**
 * The agent's tool calls of one turn. Agents announce a call twice, after its first update, or never. Here each id has
 * exactly one `tool_call` event, followed by one `tool_result`.
 */
export class ReportedCalls {
  readonly #open = new Map<string, ReportedCall>();
  /** Characters of all open calls. */
  #weight = 0;
  readonly #settled = new Set<string>();
  readonly #options: ReportedCallsOptions;
  /** Calls whose input may be incomplete: some agents send it only with the next update. */
  readonly #held = new Set<ReportedCall>();
  #any = false;

  constructor(options: ReportedCallsOptions) {
    this.#options = options;
  }

  get any(): boolean {
    return this.#any;
  }

  /**
   * A `tool_call`, a `tool_call_update`, or the call in a permission request. Calls without an id are ignored.
   * @param size characters of the message it came in.
   * @throws HarnessFailed when the agent has more open than it may.
   */
  upsert(update: JsonObject, size: number): void {
    const id = textAt(update, "toolCallId");
    if (id === undefined || id === "") return;
    const call = this.#call(id);
    if (call === undefined) return;
    const status = textAt(update, "status");
    const printed = this.#change(call, () => call.apply(update, size));
    if (call.announced === undefined) {
      const isNameless = call.name === undefined && call.title === undefined;
      // In ACP, the input of a pending call may still arrive.
      const waits =
        status === "pending" || (status === undefined && (isNameless || call.input === undefined));
      if (waits) this.#held.add(call);
      else this.#announce(call, status !== undefined);
    }
    const isOver = status === "completed" || status === "failed";
    // The result has the output of a call that prints it with its end.
    if (printed !== "" && !isOver) this.#print(call, printed);
    if (isOver) this.#finish(call, status === "failed");
    else this.#bound();
  }

  /** Whether a call has no result yet. */
  get hasOpen(): boolean {
    return this.#open.size > 0;
  }

  /** The ids of all calls of the turn, except for the oldest of very many. */
  get ids(): readonly string[] {
    return [...this.#settled, ...this.#open.keys()];
  }

  /** Whether a call has its result. */
  isSettled(id: string): boolean {
    return this.#settled.has(id);
  }

  isInputReported(id: string): boolean {
    return this.#open.get(id)?.input !== undefined;
  }

  /** The agent's question whether it may make a call, which is announced with its tool and its known input. */
  question(id: string, ownTools: OwnTools): PermissionQuestion {
    const call = this.#call(id) ?? new ReportedCall(id);
    this.#announce(call, true);
    return questionOf(call, this.#identity(call), ownTools);
  }

  /** Emits every `tool_call` that waits for its input: another event follows, so it won't arrive in time. */
  release(): void {
    for (const call of this.#held) this.#announce(call, false);
  }

  /** Some agents never mention a denied call again. */
  deny(id: string): void {
    const call = this.#call(id);
    if (call === undefined) return;
    this.#announce(call, true);
    const output = `Tool '${this.#identity(call).name}' was denied.`;
    this.#options.emit({ type: "tool_result", id, output, isError: true, denied: true }, 0, call);
    this.#settle(call);
  }

  /** Ends every call without a result: the turn is over, and none will arrive. */
  settle(reason: string): void {
    this.release();
    for (const call of [...this.#open.values()]) {
      this.#options.emit({ type: "tool_result", id: call.id, output: reason, isError: true }, 0, call);
      this.#settle(call);
    }
  }

  /** The open call with this id, which may be new. Undefined for a call that has its result. */
  #call(id: string): ReportedCall | undefined {
    if (this.#settled.has(id)) return undefined;
    let call = this.#open.get(id);
    if (call === undefined) {
      if (id.length > maxIdLength)
        throw this.#tooMuch(`a call whose id has more than ${maxIdLength} characters`);
      call = new ReportedCall(id);
      this.#any = true;
      this.#open.set(id, call);
      this.#weight += call.weight;
    }
    return call;
  }

  #change(call: ReportedCall, change: () => string): string {
    this.#weight -= call.weight;
    const printed = change();
    this.#weight += call.weight;
    return printed;
  }

  #print(call: ReportedCall, delta: string): void {
    this.#announce(call, true);
    this.#options.emit({ type: "tool_output", id: call.id, delta }, 0, call);
  }

  #bound(): void {
    const { openCalls, openCallCharacters } = this.#options;
    if (this.#open.size > openCalls) throw this.#tooMuch(`more than ${openCalls} calls`);
    if (this.#weight > openCallCharacters) {
      throw this.#tooMuch(`calls of more than ${openCallCharacters} characters`);
    }
  }

  #tooMuch(what: string): HarnessFailed {
    return new HarnessFailed(`${this.#options.title} has ${what} open at once: its turn was ended.`);
  }

  /** @param complete whether the known input is final. */
  #announce(call: ReportedCall, complete: boolean): void {
    this.#held.delete(call);
    if (call.announced !== undefined) return;
    const { name, server, input } = this.#identity(call);
    // A published tool always has arguments: an agent that shows none has none.
    const shown = input ?? call.rawInput ?? (server !== undefined && complete ? {} : undefined);
    const { locations, parent } = call;
    call.announced = locations;
    const parentCall = parent === undefined ? undefined : this.#open.get(parent);
    if (parentCall !== undefined) this.#announce(parentCall, true);
    this.#options.emit(
      {
        type: "tool_call",
        id: call.id,
        name,
        input: shown,
        locations: nonEmpty(locations),
        ...(parent === undefined ? {} : { parentToolCallId: parent }),
      },
      call.weight,
      call,
    );
  }

  #finish(call: ReportedCall, failed: boolean): void {
    const { output, changes, locations } = call;
    this.#options.emit(
      {
        type: "tool_result",
        id: call.id,
        output,
        changes: failed ? undefined : nonEmpty(changes),
        locations: isDeepStrictEqual(locations, call.announced) ? undefined : [...locations],
        isError: failed || undefined,
      },
      call.weight,
      call,
    );
    this.#settle(call);
  }

  /** Forgets a call and its content: a long turn has many calls, and each may be large. */
  #settle(call: ReportedCall): void {
    this.#held.delete(call);
    if (!this.#open.delete(call.id)) return;
    this.#weight -= call.weight;
    this.#settled.add(call.id);
    const [oldest] = this.#settled;
    if (this.#settled.size > maxSettled && oldest !== undefined) this.#settled.delete(oldest);
  }

  #identity(call: ReportedCall): ToolIdentity {
    const identity = this.#options.identify(call);
    // The profile's interpretation takes precedence: some agents wrap the input.
    if (identity.input !== undefined || call.input === undefined) return identity;
    return { ...identity, input: call.input };
  }
}

/** Milliseconds that a permission question waits for the input of its call. */
const limitMs = 500;
const pollMs = 5;

/** Settles when the call's input is known, the turn stops, or the time is over: there may be no input. */
export async function inputReported(
  tools: Pick<ReportedCalls, "isInputReported">,
  id: string,
  stopped: () => boolean,
): Promise<void> {
  for (const end = Date.now() + limitMs; Date.now() < end && !stopped(); ) {
    if (tools.isInputReported(id)) return;
    await delay(pollMs);
  }
}

/** The question to the run. An input that the agent doesn't send stays undefined: it isn't known to be empty. */
function questionOf(
  { id, kind, changes, locations }: ReportedCall,
  { name, server, input, readOnly = kind === "read" || kind === "search" }: ToolIdentity,
  ownTools: OwnTools,
): PermissionQuestion {
  return {
    toolCallId: id,
    toolName: name,
    input,
    server,
    readOnly: readOnly || undefined,
    toolClass: server === undefined ? toolClassOf(name, kind, ownTools) : undefined,
    changes: nonEmpty(changes),
    locations: nonEmpty(locations),
  };
}

/** An event and a question leave out a list without entries. */
function nonEmpty<Item>(items: readonly Item[]): Item[] | undefined {
  return items.length === 0 ? undefined : [...items];
}

/** What one of the agent's own tools does: according to its profile, else to the call (ACP's `ToolKind`). */
function toolClassOf(name: string, kind: string | undefined, ownTools: OwnTools): ToolClass | undefined {
  const listed = Object.hasOwn(ownTools, name) ? ownTools[name] : undefined;
  return listed === "other" ? undefined : (listed ?? classByKind[kind ?? ""]);
}

const classByKind: Readonly<Record<string, ToolClass>> = {
  execute: "shell",
  edit: "edit",
  delete: "edit",
  move: "edit",
  read: "read",
  search: "read",
  fetch: "fetch",
};

/** A message from the agent. */
interface Source {
  /** Characters. */
  readonly size: number;
}

/** A tool call with what its updates have contained so far. */
class ReportedCall implements ToolCallView {
  title: string | undefined;
  name: string | undefined;
  kind: string | undefined;
  locations: readonly FileLocation[] = [];
  changes: readonly FileChange[] = [];
  /** The texts of its content; undefined while there are none. */
  text: string | undefined;
  /** The locations with which it was announced; undefined until then. */
  announced: readonly FileLocation[] | undefined;
  rawInput: unknown;
  /** The call that began the subagent which makes this one; undefined where the agent doesn't say so. */
  parent: string | undefined;
  #content: readonly unknown[] = [];
  #rawOutput: unknown;
  /** Output of a terminal of the call (Codex, Pi), which arrives in pieces. */
  #terminal = "";
  /** The message that set each field: together their sizes are at least what the call holds in memory. */
  readonly #sources = new Map<string, Source>();

  constructor(readonly id: string) {}

  /** The first file that the call names. */
  get path(): string | undefined {
    return this.locations[0]?.path;
  }

  get textInput(): unknown {
    return textInputOf(this.#content);
  }

  /** The input that the agent has sent. Undefined as long as it has no content. */
  get input(): unknown {
    return hasContent(this.rawInput) ? this.rawInput : undefined;
  }

  /** Most characters that the call holds. */
  get weight(): number {
    let weight = this.id.length;
    for (const { size } of new Set(this.#sources.values())) weight += size;
    return weight;
  }

  /**
   * Applies an update.
   * @param size characters of the update.
   * @returns what it adds to the output of the call's terminal; empty for nothing.
   */
  apply(update: JsonObject, size: number): string {
    const message: Source = { size };
    const set = (field: string) => this.#sources.set(field, message);
    for (const field of ["title", "name", "kind"] as const) {
      const text = textAt(update, field) ?? (field === "name" ? nameInMeta(update) : undefined);
      if (text === undefined) continue;
      this[field] = text;
      set(field);
    }
    this.parent ??= parentCallIn(update);
    const locations = locationsIn(update.locations);
    if (locations.length > 0) {
      this.locations = locations;
      set("locations");
    }
    const { rawInput, rawOutput, content } = update;
    // Agents begin with `{}` and fill it in later, never the other way round.
    const isFirst = this.rawInput === undefined && rawInput !== null && rawInput !== "";
    if (rawInput !== undefined && (hasContent(rawInput) || isFirst)) {
      this.rawInput = rawInput;
      set("input");
    }
    if (rawOutput !== undefined && rawOutput !== null) {
      this.#rawOutput = rawOutput;
      set("rawOutput");
    }
    // Content is replaced as a whole, never appended.
    if (Array.isArray(content)) {
      this.text = contentText(content) || undefined;
      this.#content = content;
      set("text");
      // Some agents report the diff only before the call is made.
      const changes = changesIn(content);
      if (changes.length > 0) {
        this.changes = changes;
        set("changes");
      }
    }
    const shown =
      valueAt(update, "_meta", "terminal_output_delta", "data") ??
      valueAt(update, "_meta", "terminal_output", "data");
    if (typeof shown !== "string" || shown === "") return "";
    this.#terminal += shown;
    this.#sources.set("terminal", { size: this.#terminal.length });
    return shown;
  }

  /** Plain text if there is any, then the text for people, then whatever the agent sends. */
  get output(): unknown {
    const raw = this.#rawOutput;
    // The text for people next to it may have markup, or still be the description of the call (Claude Code).
    if (typeof raw === "string") return raw;
    // Qwen Code, OpenCode: the text next to it is a report that contains the output.
    const output = valueAt(raw, "output");
    if (typeof output === "string") return output;
    if (this.text !== undefined) return this.text;
    const text = textOfResult(raw);
    if (text !== "") return text;
    return this.#terminal === "" ? raw : this.#terminal;
  }
}

/** Whether an input has content: `{}` may mean "none" or "not yet". */
function hasContent(input: unknown): boolean {
  if (input === undefined || input === null || input === "") return false;
  return !(isJsonObject(input) && Object.keys(input).length === 0);
}

/** Where agents put a tool's name before ACP had a field for it: Qwen Code, Claude Code. */
function nameInMeta(update: JsonObject): string | undefined {
  const name = valueAt(update, "_meta", "toolName") ?? valueAt(update, "_meta", "claudeCode", "toolName");
  return typeof name === "string" ? name : undefined;
}

/** Characters of a call's id. */
const maxIdLength = 1_024;

/** The call that began the subagent which an update is of, where agents say so: Qwen Code, Claude Code. */
export function parentCallIn(update: JsonObject): string | undefined {
  const id =
    valueAt(update, "_meta", "parentToolCallId") ?? valueAt(update, "_meta", "claudeCode", "parentToolUseId");
  const isId = typeof id === "string" && id !== "" && id.length <= maxIdLength && id !== update.toolCallId;
  return isId ? id : undefined;
}

/** The text of an MCP tool's result, as it is or wrapped once (Codex). */
function textOfResult(raw: unknown): string {
  const content = valueAt(raw, "content") ?? valueAt(raw, "result", "content");
  if (!Array.isArray(content)) return "";
  return joined(content.map((block: unknown) => (isJsonObject(block) ? textAt(block, "text") : undefined)));
}

/** The input that a call's content shows as text. */
export function textInputOf(content: readonly unknown[]): unknown {
  return readInput(contentText(content));
}

/** The texts of a call's content. */
function contentText(content: readonly unknown[]): string {
  return joined(
    content.map((part) => {
      if (!isJsonObject(part)) return undefined;
      if (part.type === "diff") return `${textAt(part, "path") ?? "A file"} was changed.`;
      return isJsonObject(part.content) ? textAt(part.content, "text") : undefined;
    }),
  );
}

/** One text of several, without those that are empty. */
function joined(texts: readonly (string | undefined)[]): string {
  return texts.filter((text) => text !== undefined && text !== "").join("\n");
}

/** Changes and locations of one call. Further ones are left out. */
const maxChanges = 64;
const maxLocations = 256;
/** Characters of a path; one that is longer isn't reported. */
const maxPathLength = 4_096;
/** Characters of the texts of one change, and of all changes of a call. A change beyond that has no texts. */
const maxChangeCharacters = 65_536;
const maxCallCharacters = 262_144;

/** The diffs in the content of a call. A text is whole or left out: a diff of shortened texts would be wrong. Pure. */
export function changesIn(content: readonly unknown[]): FileChange[] {
  let room = maxCallCharacters;
  const changes: FileChange[] = [];
  for (const part of content) {
    if (!isJsonObject(part) || part.type !== "diff" || changes.length >= maxChanges) continue;
    const path = pathAt(part);
    const newText = textAt(part, "newText");
    if (path === undefined || newText === undefined) continue;
    const oldText = textAt(part, "oldText");
    const length = newText.length + (oldText?.length ?? 0);
    if (length > Math.min(maxChangeCharacters, room)) {
      changes.push({ path, omitted: length });
      continue;
    }
    room -= length;
    changes.push({ path, oldText, newText });
  }
  return changes;
}

/** The files that a call names. Pure. */
export function locationsIn(locations: unknown): FileLocation[] {
  if (!Array.isArray(locations)) return [];
  return locations.slice(0, maxLocations).flatMap((location: unknown): FileLocation[] => {
    const path = isJsonObject(location) ? pathAt(location) : undefined;
    if (path === undefined) return [];
    const line = isJsonObject(location) ? numberAt(location, "line") : undefined;
    return [{ path, line: Number.isSafeInteger(line) ? line : undefined }];
  });
}

function pathAt(record: Readonly<Record<string, unknown>>): string | undefined {
  const path = textAt(record, "path");
  return path === undefined || path === "" || path.length > maxPathLength ? undefined : path;
}
