import type { AgentEvent } from "@ambit/core/plugin";
import type { ToolCallView, ToolIdentity } from "../profiles/profile.js";
import { isRecord, type JsonRecord, textAt, valueAt } from "./json-reading.js";

interface Call {
  readonly id: string;
  title: string | undefined;
  name: string | undefined;
  kind: string | undefined;
  path: string | undefined;
  input: unknown;
  text: string;
  rawOutput: unknown;
  announced: boolean;
  settled: boolean;
}

export interface ToolCallsOptions {
  emit(event: AgentEvent): void;
  identify(call: ToolCallView): ToolIdentity;
}

/**
 * The agent's tool calls of one turn. Agents announce a call twice, only after its update, or never; here each
 * id has exactly one `tool_call` event, and one `tool_result` behind it.
 */
export class ToolCalls {
  readonly #calls = new Map<string, Call>();
  readonly #options: ToolCallsOptions;
  /** Seen, but without its name or input: some agents tell them only in the next update. */
  #held: Call | undefined;

  constructor(options: ToolCallsOptions) {
    this.#options = options;
  }

  get any(): boolean {
    return this.#calls.size > 0;
  }

  /** A `tool_call`, a `tool_call_update`, or the call in a permission request. Calls without an id are ignored. */
  upsert(update: JsonRecord): void {
    const id = textAt(update, "toolCallId");
    if (id === undefined || id === "") return;
    const call = this.#call(id);
    if (this.#held !== undefined && this.#held !== call) this.release();
    if (call.settled) return;
    call.title = textAt(update, "title") ?? call.title;
    call.name = textAt(update, "name") ?? call.name;
    call.kind = textAt(update, "kind") ?? call.kind;
    call.path = firstPath(update.locations) ?? call.path;
    if (isTold(update.rawInput)) call.input = update.rawInput;
    if (update.rawOutput !== undefined && update.rawOutput !== null) call.rawOutput = update.rawOutput;
    // Content is replaced as a whole, never added to.
    if (Array.isArray(update.content)) call.text = contentText(update.content);
    const status = textAt(update, "status") ?? "pending";
    if (!call.announced) {
      const isNameless = call.name === undefined && call.title === undefined;
      if (status === "pending" && (isNameless || !isTold(call.input))) this.#held = call;
      else this.#announce(call);
    }
    if (status === "completed" || status === "failed") this.#finish(call, status === "failed");
  }

  /** Announces a call, and tells which tool it is of and what is known of its input. */
  describe(id: string): ToolIdentity & { readonly readOnly: boolean; readonly kind: string | undefined } {
    const call = this.#call(id);
    this.#announce(call);
    const identity = this.#identity(call);
    const { kind } = call;
    return { ...identity, readOnly: identity.readOnly ?? (kind === "read" || kind === "search"), kind };
  }

  /** Emits the `tool_call` that waits for its input: something else happens, so it won't come in time. */
  release(): void {
    if (this.#held !== undefined) this.#announce(this.#held);
  }

  /** Some agents never mention a call again that was denied. */
  deny(id: string): void {
    const call = this.#call(id);
    if (call.settled) return;
    this.#announce(call);
    this.#options.emit({
      type: "tool_result",
      id,
      output: `Tool '${this.#identity(call).name}' was denied.`,
      isError: true,
      denied: true,
    });
    forget(call);
  }

  /** Ends every call that has no result yet: the turn is over, and none will come. */
  settle(reason: string): void {
    this.release();
    for (const call of this.#calls.values()) {
      if (call.settled) continue;
      this.#options.emit({ type: "tool_result", id: call.id, output: reason, isError: true });
      forget(call);
    }
  }

  #call(id: string): Call {
    let call = this.#calls.get(id);
    if (call === undefined) {
      call = {
        id,
        title: undefined,
        name: undefined,
        kind: undefined,
        path: undefined,
        input: undefined,
        text: "",
        rawOutput: undefined,
        announced: false,
        settled: false,
      };
      this.#calls.set(id, call);
    }
    return call;
  }

  #announce(call: Call): void {
    if (this.#held === call) this.#held = undefined;
    if (call.announced) return;
    call.announced = true;
    const { name, input } = this.#identity(call);
    this.#options.emit({ type: "tool_call", id: call.id, name, ...(input === undefined ? {} : { input }) });
  }

  #finish(call: Call, failed: boolean): void {
    const { output, data } = outcome(call);
    this.#options.emit({
      type: "tool_result",
      id: call.id,
      ...(output === undefined ? {} : { output }),
      ...(data === undefined ? {} : { data }),
      ...(failed ? { isError: true } : {}),
    });
    forget(call);
  }

  #identity(call: Call): ToolIdentity {
    const identity = this.#options.identify({
      id: call.id,
      ...(call.title === undefined ? {} : { title: call.title }),
      ...(call.name === undefined ? {} : { name: call.name }),
      ...(call.kind === undefined ? {} : { kind: call.kind }),
      ...(call.path === undefined ? {} : { path: call.path }),
      ...(isTold(call.input) ? { input: call.input } : {}),
      ...(call.text === "" ? {} : { text: call.text }),
    });
    // The profile's reading goes first: some agents wrap the input in one of their own.
    if (identity.input !== undefined || !isTold(call.input)) return identity;
    return { ...identity, input: call.input };
  }
}

/** Settles a call, and lets go of what it brought: a long turn has many calls, and each may be large. */
function forget(call: Call): void {
  call.settled = true;
  call.input = undefined;
  call.text = "";
  call.rawOutput = undefined;
}

/** Agents begin a call with `{}` or nothing and fill the input in later. */
function isTold(input: unknown): boolean {
  if (input === undefined || input === null || input === "") return false;
  return !(isRecord(input) && Object.keys(input).length === 0);
}

/** Text for people first; what the agent gives beside it is data. */
function outcome(call: Call): { output?: unknown; data?: unknown } {
  const raw = call.rawOutput;
  const text = call.text === "" ? textOfResult(raw) : call.text;
  if (text !== "") return isRecord(raw) ? { output: text, data: raw } : { output: text };
  return raw === undefined ? {} : { output: raw };
}

/** The text of an MCP tool's result, as it is or wrapped once (Codex). */
function textOfResult(raw: unknown): string {
  const content = valueAt(raw, "content") ?? valueAt(raw, "result", "content");
  if (!Array.isArray(content)) return "";
  return joined(content.map((block: unknown) => (isRecord(block) ? textAt(block, "text") : undefined)));
}

function firstPath(locations: unknown): string | undefined {
  const [first]: readonly unknown[] = Array.isArray(locations) ? locations : [];
  return isRecord(first) ? textAt(first, "path") : undefined;
}

function contentText(content: readonly unknown[]): string {
  return joined(
    content.map((part) => {
      if (!isRecord(part)) return undefined;
      if (part.type === "diff") return `${textAt(part, "path") ?? "A file"} was changed.`;
      return isRecord(part.content) ? textAt(part.content, "text") : undefined;
    }),
  );
}

function joined(texts: readonly (string | undefined)[]): string {
  return texts.filter((text) => text !== undefined && text !== "").join("\n");
}
