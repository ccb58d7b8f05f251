import type { FileChange, FileLocation } from "@ambit/core/plugin";
import type { ToolCallView } from "../../profiles/profile.js";
import { readInput } from "../../profiles/tool-names.js";
import { isRecord, type JsonRecord, numberAt, textAt, valueAt } from "../json-reading.js";

/** A message from the agent. */
interface Source {
  /** Characters. */
  readonly size: number;
}

/** A tool call with what its updates have contained so far. */
export class ReportedCall implements ToolCallView {
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

  /** Undefined as long as it has no content. */
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
  apply(update: JsonRecord, size: number): string {
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
  return !(isRecord(input) && Object.keys(input).length === 0);
}

/** Where agents put a tool's name before ACP had a field for it: Qwen Code, Claude Code. */
function nameInMeta(update: JsonRecord): string | undefined {
  const name = valueAt(update, "_meta", "toolName") ?? valueAt(update, "_meta", "claudeCode", "toolName");
  return typeof name === "string" ? name : undefined;
}

/** Characters of a call's id. */
export const maxIdLength = 1_024;

/** The call that began the subagent which an update is of, where agents say so: Qwen Code, Claude Code. */
export function parentCallIn(update: JsonRecord): string | undefined {
  const id =
    valueAt(update, "_meta", "parentToolCallId") ?? valueAt(update, "_meta", "claudeCode", "parentToolUseId");
  const isId = typeof id === "string" && id !== "" && id.length <= maxIdLength && id !== update.toolCallId;
  return isId ? id : undefined;
}

/** The text of an MCP tool's result, as it is or wrapped once (Codex). */
function textOfResult(raw: unknown): string {
  const content = valueAt(raw, "content") ?? valueAt(raw, "result", "content");
  if (!Array.isArray(content)) return "";
  return joined(content.map((block: unknown) => (isRecord(block) ? textAt(block, "text") : undefined)));
}

/** The input that a call's content shows as text. */
export function textInputOf(content: readonly unknown[]): unknown {
  return readInput(contentText(content));
}

/** The texts of a call's content. */
function contentText(content: readonly unknown[]): string {
  return joined(
    content.map((part) => {
      if (!isRecord(part)) return undefined;
      if (part.type === "diff") return `${textAt(part, "path") ?? "A file"} was changed.`;
      return isRecord(part.content) ? textAt(part.content, "text") : undefined;
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
    if (!isRecord(part) || part.type !== "diff" || changes.length >= maxChanges) continue;
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
    const path = isRecord(location) ? pathAt(location) : undefined;
    if (path === undefined) return [];
    const line = isRecord(location) ? numberAt(location, "line") : undefined;
    return [{ path, line: Number.isSafeInteger(line) ? line : undefined }];
  });
}

function pathAt(record: Readonly<Record<string, unknown>>): string | undefined {
  const path = textAt(record, "path");
  return path === undefined || path === "" || path.length > maxPathLength ? undefined : path;
}
