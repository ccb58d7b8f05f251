import type { ToolCallView } from "../../profiles/profile.js";
import { isRecord, type JsonRecord, textAt, valueAt } from "../json-reading.js";

/** A message of the agent's. */
interface Source {
  /** Characters. */
  readonly size: number;
}

/** A tool call as its updates have told it so far. */
export interface Call {
  readonly id: string;
  title: string | undefined;
  name: string | undefined;
  kind: string | undefined;
  path: string | undefined;
  input: unknown;
  text: string;
  /** What a terminal of the call has shown (Codex, Pi): it comes in pieces. */
  terminal: string;
  rawOutput: unknown;
  /** By field, the message that brought it: together they are at least what the call holds in memory. */
  readonly sources: Map<string, Source>;
  announced: boolean;
}

export function newCall(id: string): Call {
  return {
    id,
    title: undefined,
    name: undefined,
    kind: undefined,
    path: undefined,
    input: undefined,
    text: "",
    terminal: "",
    rawOutput: undefined,
    sources: new Map(),
    announced: false,
  };
}

/** Takes over what an update says. `size` is the update's, in characters. */
export function applyUpdate(call: Call, update: JsonRecord, size: number): void {
  const message: Source = { size };
  const set = (field: string) => call.sources.set(field, message);
  for (const field of ["title", "name", "kind"] as const) {
    const text = textAt(update, field) ?? (field === "name" ? nameInMeta(update) : undefined);
    if (text === undefined) continue;
    call[field] = text;
    set(field);
  }
  const path = firstPath(update.locations);
  if (path !== undefined) {
    call.path = path;
    set("path");
  }
  if (update.rawInput !== undefined && update.rawInput !== null && update.rawInput !== "") {
    // Agents begin with `{}` and fill it in later; the other way round it isn't meant.
    if (isTold(update.rawInput) || call.input === undefined) {
      call.input = update.rawInput;
      set("input");
    }
  }
  if (update.rawOutput !== undefined && update.rawOutput !== null) {
    call.rawOutput = update.rawOutput;
    set("rawOutput");
  }
  // Content is replaced as a whole, never added to.
  if (Array.isArray(update.content)) {
    call.text = contentText(update.content);
    set("text");
  }
  const shown =
    valueAt(update, "_meta", "terminal_output_delta", "data") ??
    valueAt(update, "_meta", "terminal_output", "data");
  if (typeof shown === "string" && shown !== "") {
    call.terminal += shown;
    call.sources.set("terminal", { size: call.terminal.length });
  }
}

/** Where agents put a tool's own name while ACP had no field for it: Qwen Code, Claude Code. */
function nameInMeta(update: JsonRecord): string | undefined {
  const name = valueAt(update, "_meta", "toolName") ?? valueAt(update, "_meta", "claudeCode", "toolName");
  return typeof name === "string" ? name : undefined;
}

/** Characters that a call holds at most. */
export function weightOf(call: Call): number {
  let weight = call.id.length;
  for (const { size } of new Set(call.sources.values())) weight += size;
  return weight;
}

export function viewOf(call: Call): ToolCallView {
  return {
    id: call.id,
    ...(call.title === undefined ? {} : { title: call.title }),
    ...(call.name === undefined ? {} : { name: call.name }),
    ...(call.kind === undefined ? {} : { kind: call.kind }),
    ...(call.path === undefined ? {} : { path: call.path }),
    ...(isTold(call.input) ? { input: call.input } : {}),
    ...(call.text === "" ? {} : { text: call.text }),
  };
}

/** Whether an input says anything: `{}` may mean "none", or "not yet". */
export function isTold(input: unknown): boolean {
  if (input === undefined || input === null || input === "") return false;
  return !(isRecord(input) && Object.keys(input).length === 0);
}

/** A plain text first, then the text for people, else whatever the agent gives. */
export function outputOf(call: Call): unknown {
  const { rawOutput: raw } = call;
  // Beside it, the text for people may be marked up, or still be what described the call (Claude Code).
  if (typeof raw === "string") return raw;
  // Qwen Code, OpenCode: beside it, the text is a report around the output.
  const output = valueAt(raw, "output");
  if (typeof output === "string") return output;
  if (call.text !== "") return call.text;
  const text = textOfResult(raw);
  if (text !== "") return text;
  return call.terminal === "" ? raw : call.terminal;
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
