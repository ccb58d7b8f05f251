import { z } from "zod";
import { limits } from "./request/limits.js";

/**
 * The known shape of a value, derived from its schema: which keys an object may have, and the level below each.
 * Where a level is absent, the value is opaque: the caller's own data, in which nothing is renamed or dropped.
 */
export type Level = ObjectLevel | ListLevel | MapLevel;

interface ObjectLevel {
  readonly kind: "object";
  readonly keys: ReadonlyMap<string, Level | undefined>;
}

interface ListLevel {
  readonly kind: "list";
  readonly element: Level | undefined;
  /** Maximum number of entries. */
  readonly max: number;
}

/** An object whose keys are the caller's own: headers, an environment. */
interface MapLevel {
  readonly kind: "map";
}

/** Unions merge: an object is known by the keys of all its variants. */
export function levelOf(schema: z.core.$ZodType): Level | undefined {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return levelOf(schema.unwrap());
  if (schema instanceof z.ZodObject) return isOpen(schema) ? undefined : objectLevel(schema);
  if (schema instanceof z.ZodArray) return listLevel(schema);
  if (schema instanceof z.ZodRecord) return { kind: "map" };
  if (schema instanceof z.ZodUnion) return schema.options.map(levelOf).reduce(mergeLevels, undefined);
  return undefined;
}

function objectLevel(schema: z.ZodObject): ObjectLevel {
  return {
    kind: "object",
    keys: new Map(Object.entries(schema.shape).map(([key, field]) => [key, levelOf(field)])),
  };
}

function listLevel(schema: z.ZodArray): ListLevel {
  const limit = schema.def.checks?.find((check) => check instanceof z.core.$ZodCheckMaxLength);
  return { kind: "list", element: levelOf(schema.element), max: limit?._zod.def.maximum ?? limits.entries };
}

function isOpen(schema: z.ZodObject): boolean {
  return !(schema.def.catchall instanceof z.ZodNever);
}

export function mergeLevels(one: Level | undefined, other: Level | undefined): Level | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  if (one.kind !== "object" || other.kind !== "object") return one;
  const keys = new Map(one.keys);
  for (const [key, level] of other.keys) keys.set(key, mergeLevels(keys.get(key), level));
  return { kind: "object", keys };
}

/** The level that a path of an issue leads to. */
export function levelAt(level: Level | undefined, path: readonly PropertyKey[]): Level | undefined {
  let current = level;
  for (const step of path) {
    if (current?.kind === "list") current = current.element;
    else current = current?.kind === "object" ? current.keys.get(String(step)) : undefined;
  }
  return current;
}
