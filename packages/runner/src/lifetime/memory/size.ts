import { isJsonObject } from "@ambit/core/contract";

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

function sizeOfScalar(value: unknown): number {
  return typeof value === "string" ? nodeCost + value.length : nodeCost;
}
