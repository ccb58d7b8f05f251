import { type Issue, isJsonObject, limits, pathText } from "@ambit/core/contract";

/** The same text for equal JSON values, regardless of the order of their keys. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, inner]) => `${JSON.stringify(key)}:${canonicalJson(inner)}`);
  return `{${entries.join(",")}}`;
}

/**
 * The path of a value deeper than `max` levels of lists and objects; undefined when there is none. Recurses
 * no deeper than that itself: what is checked here would overflow the stack of all that recurse without a limit.
 */
export function pathBeyondDepth(
  value: unknown,
  max: number = limits.depth,
): readonly PropertyKey[] | undefined {
  return isWithin(value, max) ? undefined : pathOfFirst(value, max);
}

/** Called for every request and event, so it allocates nothing. */
function isWithin(value: unknown, levels: number): boolean {
  if (Array.isArray(value)) {
    if (levels === 0) return false;
    for (let at = 0; at < value.length; at += 1) if (!isWithin(value[at], levels - 1)) return false;
    return true;
  }
  if (!isJsonObject(value)) return true;
  if (levels === 0) return false;
  for (const key in value) {
    const inner = value[key];
    if (typeof inner === "object" && !isWithin(inner, levels - 1)) return false;
  }
  return true;
}

/** Iterative, without recursion. */
function pathOfFirst(value: unknown, max: number): readonly PropertyKey[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  // One entry per level: the remaining values, and their keys.
  const levels = [levelOf(value)];
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    const inner = level.values[level.next];
    if (level.next >= level.values.length) levels.pop();
    level.next += 1;
    if (typeof inner !== "object" || inner === null) continue;
    if (levels.length >= max) return levels.map(keyOf);
    levels.push(levelOf(inner));
  }
  return undefined;
}

interface OpenContainer {
  readonly container: object;
  readonly values: readonly unknown[];
  next: number;
}

function levelOf(container: object): OpenContainer {
  return { container, values: Array.isArray(container) ? container : Object.values(container), next: 0 };
}

function keyOf({ container, next }: OpenContainer): PropertyKey {
  return Array.isArray(container) ? next - 1 : (Object.keys(container)[next - 1] ?? "");
}

/** The issue for a path that `pathBeyondDepth` found. */
export function tooDeep(path: readonly PropertyKey[]): Issue {
  const message = `holds more than ${limits.depth} levels of lists and objects within each other: send fewer`;
  return { path: pathText(path.slice(0, 3)), message };
}

/** The cost of a value in addition to its strings. */
const nodeCost = 16;

/**
 * The approximate number of characters that a JSON value takes in memory: many small values are short as JSON, and take a
 * hundred times as much. Iterative, since its depth is unbounded.
 */
export function sizeOf(value: unknown): number {
  let size = nodeCost + sizeOfScalar(value);
  if (typeof value !== "object" || value === null) return size;
  // Called for every event. Most are flat, and need no stack.
  let open: object[] | undefined;
  for (let next: object | undefined = value; next !== undefined; next = open?.pop()) {
    if (Array.isArray(next)) {
      for (const item of next) {
        size += sizeOfScalar(item);
        if (typeof item !== "object" || item === null) continue;
        open ??= [];
        open.push(item);
      }
    } else if (isJsonObject(next)) {
      for (const key in next) {
        const inner = next[key];
        size += key.length + sizeOfScalar(inner);
        if (typeof inner !== "object" || inner === null) continue;
        open ??= [];
        open.push(inner);
      }
    }
  }
  return size;
}

/** Bytes of memory that a value takes, without the values in it. */
export function sizeOfScalar(value: unknown): number {
  return typeof value === "string" ? nodeCost + value.length : nodeCost;
}
