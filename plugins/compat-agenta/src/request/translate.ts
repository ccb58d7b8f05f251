import { type Issue, isJsonObject, type JsonObject, limits, pathText } from "@ambit/core/contract";
import type { Translation } from "@ambit/core/plugin";
import { withCurrentValues } from "./older-values.js";
import { type LevelReader, type ObjectReader, requestReader } from "./reader.js";

/**
 * Translates snake_case names and fields of earlier wires. Reads only the levels of the contract, never inside a caller's
 * own values. What needs no change isn't copied, so that a thousand tools cost one traversal and nothing else. Pure.
 */
export function translate(request: JsonObject): Translation {
  const issues: Issue[] = [];
  const current = walk(request, requestReader, [], issues);
  return { request: isJsonObject(current) ? withCurrentValues(current, issues) : request, issues };
}

function walk(
  value: unknown,
  reader: LevelReader | undefined,
  path: PropertyKey[],
  issues: Issue[],
): unknown {
  if (reader?.kind === "list")
    return Array.isArray(value) && value.length <= reader.max
      ? walkList(value, reader.element, path, issues)
      : value;
  return reader !== undefined && isJsonObject(value) ? walkObject(value, reader, path, issues) : value;
}

function walkList(
  list: readonly unknown[],
  element: LevelReader,
  path: PropertyKey[],
  issues: Issue[],
): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (const [index, value] of list.entries()) {
    path.push(index);
    const current = walk(value, element, path, issues);
    path.pop();
    if (current === value) continue;
    copy ??= [...list];
    copy[index] = current;
  }
  return copy ?? list;
}

function walkObject(
  object: JsonObject,
  { keys, olderForm }: ObjectReader,
  path: PropertyKey[],
  issues: Issue[],
): JsonObject {
  const names = Object.keys(object);
  // Refused for its size.
  if (names.length > limits.entries) return object;
  let isChanged = false;
  const current: (readonly [string, unknown])[] = [];
  const older: (readonly [string, unknown])[] = [];
  for (const written of names) {
    const value = object[written];
    const key = keys.get(written);
    const { name, isOlder } = key ?? { name: written, isOlder: false };
    path.push(written);
    // An explicit null means absent, in this wire too.
    const translated = value === null ? undefined : walk(value, key?.below, path, issues);
    path.pop();
    if (translated !== value || name !== written || isOlder) isChanged = true;
    if (translated === undefined) continue;
    if (name !== written && isGiven(object, name)) {
      const message = `is given twice: \`${name}\` is the same field; send one of them`;
      issues.push({ path: pathText([...path, written]), message });
    } else (isOlder ? older : current).push([name, translated]);
  }
  if (!isChanged) return object;
  // A key `__proto__` stays a key, to be refused as unknown; assigned, it would vanish into the prototype.
  const rest = Object.fromEntries(current);
  if (older.length === 0 || olderForm === undefined) return rest;
  return olderForm.translate(rest, Object.fromEntries(older), path, issues);
}

function isGiven(object: JsonObject, name: string): boolean {
  return Object.hasOwn(object, name) && object[name] !== null;
}
