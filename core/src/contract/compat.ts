import type { z } from "zod";
import type { Issue } from "./failure.js";
import { ignoredKeyOf } from "./ignored-keys.js";
import { pathText, readableIssues } from "./issue-text.js";
import { isJsonObject, type JsonObject } from "./json.js";
import { type Level, levelOf, mergeLevels } from "./level.js";
import { limits } from "./limits.js";
import { type Translate, translateMcpServer, translateRequest, translateTool } from "./older-spelling.js";
import { withCurrentValues } from "./older-values.js";
import { olderMcpServerSchema, olderRequestSchema, olderToolSchema } from "./older-wire.js";
import { runRequestSchema } from "./request.js";

/** A request in the current spelling, not yet validated, and what could not be brought into it. */
export interface Modernised {
  readonly body: unknown;
  readonly issues: readonly Issue[];
  /** Paths of the keys that were passed over, without indices. */
  readonly ignored: readonly string[];
}

/**
 * Brings older spellings into the current one: snake_case names, fields of earlier wires, explicit nulls (which
 * mean absent). Looks only at the levels of the contract, never inside a caller's own values. What needs no change
 * isn't copied, so that a thousand tools cost a walk and nothing else.
 *
 * @param ignorable keys to pass over, as `ignoredPath` gives them.
 */
export function modernise(body: unknown, ignorable: ReadonlySet<string> = new Set()): Modernised {
  const issues: Issue[] = [];
  const ignored = new Set<string>();
  const current = walk(body, requestReader, [], { issues, ignorable, ignored });
  return {
    body: isJsonObject(current) ? withCurrentValues(current, issues) : current,
    issues,
    ignored: [...ignored],
  };
}

/** What a walk is told, and what it finds. */
interface Findings {
  readonly issues: Issue[];
  readonly ignorable: ReadonlySet<string>;
  readonly ignored: Set<string>;
}

/** A level's fields as earlier wires had them. */
interface OlderForm {
  readonly level: Level | undefined;
  translate(
    current: JsonObject,
    older: JsonObject,
    path: readonly PropertyKey[],
    issues: Issue[],
  ): JsonObject;
}

function olderForm<Schema extends z.ZodObject>(
  schema: Schema,
  translate: Translate<z.output<Schema>>,
): OlderForm {
  const level = levelOf(schema);
  return {
    level,
    translate(current, older, path, issues) {
      const parsed = schema.safeParse(older);
      if (!parsed.success) {
        issues.push(...readableIssues(parsed.error.issues, { value: older, level, path }));
        return current;
      }
      return translate(current, parsed.data, (key, message) =>
        issues.push({ path: pathText([...path, key]), message }),
      );
    },
  };
}

const olderForms: ReadonlyMap<string, OlderForm> = new Map([
  ["", olderForm(olderRequestSchema, translateRequest)],
  ["customTools[]", olderForm(olderToolSchema, translateTool)],
  ["mcpServers[]", olderForm(olderMcpServerSchema, translateMcpServer)],
]);

/** How to read a level, in whatever spelling it was written. */
type Reader = ObjectReader | ListReader | MapReader;

interface ObjectReader {
  readonly kind: "object";
  /** By the key as it may be written. */
  readonly keys: ReadonlyMap<string, Key>;
  /** Where it stands, without indices: `customTools[]`. */
  readonly path: string;
  readonly olderForm: OlderForm | undefined;
}

interface ListReader {
  readonly kind: "list";
  readonly element: Reader | undefined;
  readonly most: number;
}

interface MapReader {
  readonly kind: "map";
}

interface Key {
  /** As the contract spells it. */
  readonly name: string;
  readonly below: Reader | undefined;
  readonly isOlder: boolean;
}

function readerOf(level: Level | undefined, path: string): Reader | undefined {
  if (level === undefined || level.kind === "map") return level;
  if (level.kind === "list") return { ...level, element: readerOf(level.element, `${path}[]`) };
  const form = olderForms.get(path);
  const keys = new Map<string, Key>();
  const older = form?.level?.kind === "object" ? form.level.keys : new Map<string, Level | undefined>();
  for (const [fields, isOlder] of [
    [older, true],
    [level.keys, false],
  ] as const) {
    for (const [name, below] of fields) {
      const key = { name, below: readerOf(below, path === "" ? name : `${path}.${name}`), isOlder };
      keys.set(name, key).set(snakeCase(name), key);
    }
  }
  return { kind: "object", keys, path, olderForm: form };
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const currentLevel = levelOf(runRequestSchema);
const requestReader = readerOf(currentLevel, "");

/** Every key that a request may have, on any wire: what a misspelt one is compared with. */
export const knownLevel = withOlder(currentLevel, "");

function withOlder(level: Level | undefined, path: string): Level | undefined {
  if (level === undefined || level.kind === "map") return level;
  if (level.kind === "list") return { ...level, element: withOlder(level.element, `${path}[]`) };
  const keys = new Map<string, Level | undefined>();
  for (const [key, below] of level.keys)
    keys.set(key, withOlder(below, path === "" ? key : `${path}.${key}`));
  return mergeLevels({ kind: "object", keys }, olderForms.get(path)?.level);
}

/** What is larger than its limit is reported and left out, so that its validation costs nothing. */
function walk(value: unknown, reader: Reader | undefined, path: PropertyKey[], findings: Findings): unknown {
  const { issues } = findings;
  if (reader === undefined) return value;
  if (reader.kind === "list") {
    if (!Array.isArray(value)) return value;
    if (value.length <= reader.most) return walkList(value, reader.element, path, findings);
    issues.push(tooMany(value.length, "entries", reader.most, path));
    return [];
  }
  if (!isJsonObject(value)) return value;
  const names = Object.keys(value);
  if (names.length > limits.entries) {
    issues.push(tooMany(names.length, "keys", limits.entries, path));
    return {};
  }
  return reader.kind === "map" ? value : walkObject(value, names, reader, path, findings);
}

function tooMany(count: number, what: string, most: number, path: readonly PropertyKey[]): Issue {
  const message = `has ${count.toLocaleString("en")} ${what}, ${most.toLocaleString("en")} at most: send fewer`;
  return { path: pathText(path), message };
}

function walkList(
  list: readonly unknown[],
  element: Reader | undefined,
  path: PropertyKey[],
  findings: Findings,
): readonly unknown[] {
  if (element === undefined) return list;
  let copy: unknown[] | undefined;
  for (const [index, value] of list.entries()) {
    path.push(index);
    const current = walk(value, element, path, findings);
    path.pop();
    if (current === value) continue;
    copy ??= [...list];
    copy[index] = current;
  }
  return copy ?? list;
}

function walkObject(
  object: JsonObject,
  names: readonly string[],
  { keys, path: place, olderForm }: ObjectReader,
  path: PropertyKey[],
  findings: Findings,
): JsonObject {
  const { issues, ignorable, ignored } = findings;
  // Begun at the first change, and filled in order: deleting from a copy would make it slow to read.
  let copy: Record<string, unknown> | undefined;
  let older: Record<string, unknown> | undefined;
  for (const [index, written] of names.entries()) {
    const value = object[written];
    const key = keys.get(written);
    if (key === undefined && ignorable.has(ignoredKeyOf(place, written))) {
      ignored.add(place === "" ? written : `${place}.${written}`);
      copy ??= pick(object, names.slice(0, index));
      continue;
    }
    path.push(written);
    const current = value === null ? undefined : walk(value, key?.below, path, findings);
    path.pop();
    const name = key?.name ?? written;
    const stays = current === value && name === written && key?.isOlder !== true;
    if (copy === undefined && stays) continue;
    copy ??= pick(object, names.slice(0, index));
    if (current === undefined) continue;
    if (name !== written && given(object, name)) {
      const message = `is given twice: \`${name}\` is the same field; send one of them`;
      issues.push({ path: pathText([...path, written]), message });
    } else if (key?.isOlder === true) {
      older ??= {};
      older[name] = current;
    } else put(copy, name, current);
  }
  const current = copy ?? object;
  if (older === undefined || olderForm === undefined) return current;
  return olderForm.translate(current, older, path, issues);
}

function given(object: JsonObject, name: string): boolean {
  return Object.hasOwn(object, name) && object[name] !== null;
}

function pick(object: JsonObject, names: readonly string[]): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const name of names) put(picked, name, object[name]);
  return picked;
}

/** A key named `__proto__` stays a key, to be refused as unknown; assigned, it would vanish into the prototype. */
function put(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
