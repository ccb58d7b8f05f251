import { z } from "zod";
import { limits } from "./request/limits.js";

/**
 * The known shape of a value, derived from its schema: which keys an object may have, and the level below each.
 * Where a level is absent, the value is opaque: the caller's own data, in which nothing is renamed or dropped.
 */
export type KnownShape = KnownObject | KnownList | KnownMap;

interface KnownObject {
  readonly kind: "object";
  readonly keys: ReadonlyMap<string, KnownShape | undefined>;
}

interface KnownList {
  readonly kind: "list";
  readonly element: KnownShape | undefined;
  /** Maximum number of entries. */
  readonly max: number;
}

/** An object whose keys are the caller's own: headers, an environment. */
interface KnownMap {
  readonly kind: "map";
  /** Those that it may have; empty: any. */
  readonly names: readonly string[];
  /** Of each entry. */
  readonly value: KnownShape | undefined;
}

/** Unions merge: an object is known by the keys of all its variants. */
export function knownShapeOf(schema: z.core.$ZodType): KnownShape | undefined {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return knownShapeOf(schema.unwrap());
  if (schema instanceof z.ZodObject) return isOpen(schema) ? undefined : knownObject(schema);
  if (schema instanceof z.ZodArray) return knownList(schema);
  if (schema instanceof z.ZodRecord)
    return { kind: "map", names: namesOf(schema.keyType), value: knownShapeOf(schema.valueType) };
  if (schema instanceof z.ZodUnion)
    return schema.options.map(knownShapeOf).reduce(mergeKnownShapes, undefined);
  return undefined;
}

function knownObject(schema: z.ZodObject): KnownObject {
  return {
    kind: "object",
    keys: new Map(Object.entries(schema.shape).map(([key, field]) => [key, knownShapeOf(field)])),
  };
}

function knownList(schema: z.ZodArray): KnownList {
  const limit = schema.def.checks?.find((check) => check instanceof z.core.$ZodCheckMaxLength);
  return {
    kind: "list",
    element: knownShapeOf(schema.element),
    max: limit?._zod.def.maximum ?? limits.entries,
  };
}

function namesOf(schema: z.core.$ZodType): readonly string[] {
  return schema instanceof z.ZodEnum ? schema.options.map(String) : [];
}

function isOpen(schema: z.ZodObject): boolean {
  return !(schema.def.catchall instanceof z.ZodNever);
}

export function mergeKnownShapes(
  one: KnownShape | undefined,
  other: KnownShape | undefined,
): KnownShape | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  if (one.kind !== "object" || other.kind !== "object") return one;
  const keys = new Map(one.keys);
  for (const [key, level] of other.keys) keys.set(key, mergeKnownShapes(keys.get(key), level));
  return { kind: "object", keys };
}

/** The level that a path leads to, but not into a map, whose entries are the caller's own. */
export function knownShapeAt(
  level: KnownShape | undefined,
  path: readonly PropertyKey[],
): KnownShape | undefined {
  return path.reduce<KnownShape | undefined>(
    (current, step) => (current?.kind === "map" ? undefined : shapeBelow(current, step)),
    level,
  );
}

/** The level that a path of an issue leads to, also into entries of maps. */
export function validatedShapeAt(
  level: KnownShape | undefined,
  path: readonly PropertyKey[],
): KnownShape | undefined {
  return path.reduce(shapeBelow, level);
}

function shapeBelow(level: KnownShape | undefined, step: PropertyKey): KnownShape | undefined {
  if (level?.kind === "list") return level.element;
  return level?.kind === "map" ? level.value : level?.keys.get(String(step));
}
