import type { FileChange, FileLocation } from "@ambit/core/plugin";
import type { ToolCallView } from "../../profiles/profile.js";
import { isRecord, type JsonRecord, textAt, valueAt } from "../json-reading.js";
import { changesIn, locationsIn } from "./file-changes.js";

/** A message from the agent. */
interface Source {
  /** Characters. */
  readonly size: number;
}

/** A tool call with what its updates have contained so far. */
export interface Call {
  readonly id: string;
  title: string | undefined;
  name: string | undefined;
  kind: string | undefined;
  locations: FileLocation[];
  changes: FileChange[];
  input: unknown;
  text: string;
  /** Output of a terminal of the call (Codex, Pi), which arrives in pieces. */
  terminal: string;
  rawOutput: unknown;
  /** The size of the message that set each field: together at least what the call holds in memory. */
  readonly sources: Map<string, Source>;
  /** The locations with which it was announced; undefined until then. */
  announced: readonly FileLocation[] | undefined;
}

export function newCall(id: string): Call {
  return {
    id,
    title: undefined,
    name: undefined,
    kind: undefined,
    locations: [],
    changes: [],
    input: undefined,
    text: "",
    terminal: "",
    rawOutput: undefined,
    sources: new Map(),
    announced: undefined,
  };
}

/**
 * Applies an update.
 * @param size characters of the update.
 * @returns what it adds to the output of the call's terminal; empty for nothing.
 */
export function applyUpdate(call: Call, update: JsonRecord, size: number): string {
  const message: Source = { size };
  const set = (field: string) => call.sources.set(field, message);
  for (const field of ["title", "name", "kind"] as const) {
    const text = textAt(update, field) ?? (field === "name" ? nameInMeta(update) : undefined);
    if (text === undefined) continue;
    call[field] = text;
    set(field);
  }
  const locations = locationsIn(update.locations);
  if (locations.length > 0) {
    call.locations = locations;
    set("locations");
  }
  if (update.rawInput !== undefined && update.rawInput !== null && update.rawInput !== "") {
    // Agents begin with `{}` and fill it in later, never the other way round.
    if (hasContent(update.rawInput) || call.input === undefined) {
      call.input = update.rawInput;
      set("input");
    }
  }
  if (update.rawOutput !== undefined && update.rawOutput !== null) {
    call.rawOutput = update.rawOutput;
    set("rawOutput");
  }
  // Content is replaced as a whole, never appended.
  if (Array.isArray(update.content)) {
    call.text = contentText(update.content);
    set("text");
    // Some agents report the diff only before the call is made.
    const changes = changesIn(update.content);
    if (changes.length > 0) {
      call.changes = changes;
      set("changes");
    }
  }
  const shown =
    valueAt(update, "_meta", "terminal_output_delta", "data") ??
    valueAt(update, "_meta", "terminal_output", "data");
  if (typeof shown !== "string" || shown === "") return "";
  call.terminal += shown;
  call.sources.set("terminal", { size: call.terminal.length });
  return shown;
}

/** Where agents put a tool's name before ACP had a field for it: Qwen Code, Claude Code. */
function nameInMeta(update: JsonRecord): string | undefined {
  const name = valueAt(update, "_meta", "toolName") ?? valueAt(update, "_meta", "claudeCode", "toolName");
  return typeof name === "string" ? name : undefined;
}

/** Most characters that a call holds. */
export function weightOf(call: Call): number {
  let weight = call.id.length;
  for (const { size } of new Set(call.sources.values())) weight += size;
  return weight;
}

export function viewOf(call: Call): ToolCallView {
  const path = call.locations[0]?.path;
  return {
    id: call.id,
    ...(call.title === undefined ? {} : { title: call.title }),
    ...(call.name === undefined ? {} : { name: call.name }),
    ...(call.kind === undefined ? {} : { kind: call.kind }),
    ...(path === undefined ? {} : { path }),
    ...(hasContent(call.input) ? { input: call.input } : {}),
    ...(call.text === "" ? {} : { text: call.text }),
  };
}

/** Whether an input has content: `{}` may mean "none" or "not yet". */
export function hasContent(input: unknown): boolean {
  if (input === undefined || input === null || input === "") return false;
  return !(isRecord(input) && Object.keys(input).length === 0);
}

/** Plain text if there is any, then the text for people, then whatever the agent sends. */
export function outputOf(call: Call): unknown {
  const { rawOutput: raw } = call;
  // The text for people next to it may have markup, or still be the description of the call (Claude Code).
  if (typeof raw === "string") return raw;
  // Qwen Code, OpenCode: the text next to it is a report that contains the output.
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
