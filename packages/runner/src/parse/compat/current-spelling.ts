import { type Issue, isJsonObject, type JsonObject, limits, type Warning } from "@ambit/core/contract";
import { pathText } from "../issue-text.js";
import { ignoredKeyOf } from "./ignored-keys.js";
import { withCurrentValues } from "./older-values.js";
import { type Findings, type ObjectReader, type Reader, requestReader } from "./reader.js";

/** A request in the current spelling, not yet validated, and what could not be translated. */
export interface Respelled {
  readonly body: unknown;
  readonly issues: readonly Issue[];
  readonly warnings: readonly Warning[];
}

/**
 * Translates older spellings into the current one: snake_case names, fields of earlier wires, explicit nulls (which
 * mean absent). Reads only the levels of the contract, never inside a caller's own values. What needs no change
 * isn't copied, so that a thousand tools cost one traversal and nothing else.
 *
 * @param ignorable keys that are ignored with a warning, as `ignoredPath` gives them.
 */
export function toCurrentSpelling(body: unknown, ignorable: ReadonlySet<string> = new Set()): Respelled {
  const issues: Issue[] = [];
  const warnings = new Map<string, Warning>();
  const current = walk(body, requestReader, [], { issues, ignorable, warnings });
  return {
    body: isJsonObject(current) ? withCurrentValues(current, issues) : current,
    issues,
    warnings: [...warnings.values()],
  };
}

const ignoredMessage =
  "is not a known field, and this runner's configuration says to ignore it: it has no effect";

/** What is larger than its limit is reported and left out, so that its validation costs nothing. */
function walk(value: unknown, reader: Reader | undefined, path: PropertyKey[], findings: Findings): unknown {
  const { issues } = findings;
  if (reader === undefined) return value;
  if (reader.kind === "list") {
    if (!Array.isArray(value)) return value;
    if (value.length <= reader.max) return walkList(value, reader.element, path, findings);
    issues.push(tooMany(value.length, "entries", reader.max, path));
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

function tooMany(count: number, what: string, max: number, path: readonly PropertyKey[]): Issue {
  const message = `has ${count.toLocaleString("en")} ${what}, ${max.toLocaleString("en")} at most: send fewer`;
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
  const { issues, ignorable, warnings } = findings;
  // Created at the first change, and filled in order: deleting from a copy would make it slow to read.
  let copy: Record<string, unknown> | undefined;
  let older: Record<string, unknown> | undefined;
  for (const [index, written] of names.entries()) {
    const value = object[written];
    const key = keys.get(written);
    if (key === undefined && ignorable.has(ignoredKeyOf(place, written))) {
      const where = place === "" ? written : `${place}.${written}`;
      warnings.set(where, { path: where, message: ignoredMessage });
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
  return olderForm.translate(current, older, path, findings);
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
