import {
  type Issue,
  isJsonObject,
  type JsonObject,
  type KnownShape,
  limits,
  pathText,
  type Warning,
} from "@ambit/core/contract";
import { ignoredKeyOf } from "./ignored-keys.js";

/** A request that isn't validated yet, without what needs no validation. */
export interface Pruned {
  readonly body: unknown;
  readonly issues: readonly Issue[];
  readonly warnings: readonly Warning[];
}

interface Findings {
  readonly issues: Issue[];
  readonly ignorable: ReadonlySet<string>;
  /** By path without indices: a thousand entries with the same unknown key cause one warning. */
  readonly warnings: Map<string, Warning>;
}

const ignoredMessage =
  "is not a known field, and this runner's configuration says to ignore it: it has no effect";

/**
 * Removes explicit nulls, which mean absent, keys that the operator ignores, and what is larger than its limit, so that its
 * validation costs nothing. Reads only the levels of the contract, never inside a caller's own values. What needs no change
 * isn't copied.
 *
 * @param ignorable keys that are ignored with a warning, as `ignoredPath` gives them.
 */
export function pruned(body: unknown, level: KnownShape | undefined, ignorable: ReadonlySet<string>): Pruned {
  const findings: Findings = { issues: [], ignorable, warnings: new Map() };
  const rest = prune(body, level, [], findings);
  return { body: rest, issues: findings.issues, warnings: [...findings.warnings.values()] };
}

function prune(
  value: unknown,
  level: KnownShape | undefined,
  path: PropertyKey[],
  findings: Findings,
): unknown {
  const { issues } = findings;
  if (level === undefined) return value;
  if (level.kind === "list") {
    if (!Array.isArray(value)) return value;
    if (value.length <= level.max) return pruneList(value, level.element, path, findings);
    issues.push(tooMany(value.length, "entries", level.max, path));
    return [];
  }
  if (!isJsonObject(value)) return value;
  const names = Object.keys(value);
  if (names.length > limits.entries) {
    issues.push(tooMany(names.length, "keys", limits.entries, path));
    return {};
  }
  return level.kind === "map" ? value : pruneObject(value, names, level.keys, path, findings);
}

function tooMany(count: number, what: string, max: number, path: readonly PropertyKey[]): Issue {
  const message = `has ${count.toLocaleString("en")} ${what}, ${max.toLocaleString("en")} at most: send fewer`;
  return { path: pathText(path), message };
}

function pruneList(
  list: readonly unknown[],
  element: KnownShape | undefined,
  path: PropertyKey[],
  findings: Findings,
): readonly unknown[] {
  if (element === undefined) return list;
  let copy: unknown[] | undefined;
  for (const [index, value] of list.entries()) {
    path.push(index);
    const current = prune(value, element, path, findings);
    path.pop();
    if (current === value) continue;
    copy ??= [...list];
    copy[index] = current;
  }
  return copy ?? list;
}

function pruneObject(
  object: JsonObject,
  names: readonly string[],
  keys: ReadonlyMap<string, KnownShape | undefined>,
  path: PropertyKey[],
  findings: Findings,
): JsonObject {
  const changed = new Map<string, unknown>();
  for (const name of names) {
    const value = object[name];
    path.push(name);
    const isAbsent = value === null || (!keys.has(name) && isIgnored(path, findings));
    const current = isAbsent ? undefined : prune(value, keys.get(name), path, findings);
    path.pop();
    if (current !== value) changed.set(name, current);
  }
  return changed.size === 0 ? object : withChanges(object, changed);
}

function isIgnored(path: readonly PropertyKey[], { ignorable, warnings }: Findings): boolean {
  if (ignorable.size === 0) return false;
  const place = placeOf(path.slice(0, -1));
  const key = String(path.at(-1));
  if (!ignorable.has(ignoredKeyOf(place, key))) return false;
  const where = place === "" ? key : `${place}.${key}`;
  warnings.set(where, { path: where, message: ignoredMessage });
  return true;
}

/** `customTools[].call` */
function placeOf(path: readonly PropertyKey[]): string {
  return path
    .map((step) => (typeof step === "number" ? "[]" : `.${String(step)}`))
    .join("")
    .slice(1);
}

/** Filled in order: deleting from a copy would make it slow to read. A key `__proto__` stays a key, to be refused. */
function withChanges(object: JsonObject, changed: ReadonlyMap<string, unknown>): JsonObject {
  const entries = Object.entries(object).flatMap(([name, value]) => {
    const current = changed.has(name) ? changed.get(name) : value;
    return current === undefined ? [] : [[name, current] as const];
  });
  return Object.fromEntries(entries);
}
