/** What a schema says of its fields: which keys each level has, and which values are secret. */

import { z } from "zod";
import { limits } from "./request/limits.js";
import { isJsonObject } from "./values/json.js";
import { type SecretKind, secretKind } from "./values/secret.js";

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
  /** The maximum number of entries. */
  readonly max: number;
}

/** An object whose keys are the caller's own: headers, an environment. */
interface KnownMap {
  readonly kind: "map";
  /** The keys that it may have. Empty: any key. */
  readonly names: readonly string[];
  /** The shape of each entry. */
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
  first: KnownShape | undefined,
  other: KnownShape | undefined,
): KnownShape | undefined {
  if (first === undefined || other === undefined) return first ?? other;
  if (first.kind !== "object" || other.kind !== "object") return first;
  const keys = new Map(first.keys);
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

/** The value of a field that its schema marks as a secret. */
export interface MarkedValue {
  readonly kind: SecretKind;
  readonly value: unknown;
}

type Collect = (value: unknown, marked: MarkedValue[]) => void;

/** Finds the values of marked fields. Visits only the parts of a value that may contain one. Pure. */
export function markedValues(schema: z.core.$ZodType): (value: unknown) => readonly MarkedValue[] {
  const collect = collectorOf(schema);
  return (value) => {
    const marked: MarkedValue[] = [];
    collect?.(value, marked);
    return marked;
  };
}

/** Returns the collector of a schema's marked values; undefined if the schema marks none. */
function collectorOf(schema: z.core.$ZodType): Collect | undefined {
  const kind = secretKind(schema);
  if (kind !== undefined)
    return (value, marked) => {
      if (value !== undefined) marked.push({ kind, value });
    };
  const inner = innerOf(schema);
  if (inner !== undefined) return collectorOf(inner);
  if (schema instanceof z.ZodObject) return ofObject(schema);
  if (schema instanceof z.ZodArray)
    return ofEach(schema.element, (value) => (Array.isArray(value) ? value : []));
  if (schema instanceof z.ZodRecord)
    return ofEach(schema.valueType, (value) => (isJsonObject(value) ? Object.values(value) : []));
  if (!(schema instanceof z.ZodUnion)) return undefined;
  const options = schema.options.flatMap((option) => collectorOf(option) ?? []);
  if (options.length === 0) return undefined;
  return (value, marked) => {
    for (const collect of options) collect(value, marked);
  };
}

function ofObject(schema: z.ZodObject): Collect | undefined {
  const fields = Object.entries(schema.shape).flatMap(([name, field]) => {
    const collect = collectorOf(field);
    return collect === undefined ? [] : [{ name, collect }];
  });
  if (fields.length === 0) return undefined;
  return (value, marked) => {
    if (!isJsonObject(value)) return;
    for (const { name, collect } of fields) if (Object.hasOwn(value, name)) collect(value[name], marked);
  };
}

function ofEach(
  schema: z.core.$ZodType,
  entriesOf: (value: unknown) => readonly unknown[],
): Collect | undefined {
  const collect = collectorOf(schema);
  if (collect === undefined) return undefined;
  return (value, marked) => {
    for (const entry of entriesOf(value)) collect(entry, marked);
  };
}

/** A field of a schema, at any depth. */
export interface SchemaField {
  /** `mcpServers[].connection.env`; the values of a record are `[]` too. */
  readonly path: string;
  readonly name: string;
  /** The mark of the field or of its values. Undefined: neither is marked. */
  readonly kind: SecretKind | undefined;
  /** What its schema's `.meta()` says. */
  readonly meta: z.core.GlobalMeta | undefined;
}

/** Every field of a schema. Pure. */
export function schemaFields(schema: z.core.$ZodType, path = ""): readonly SchemaField[] {
  const inner = innerOf(schema);
  if (inner !== undefined) return schemaFields(inner, path);
  if (schema instanceof z.ZodArray) return schemaFields(schema.element, `${path}[]`);
  if (schema instanceof z.ZodRecord) return schemaFields(schema.valueType, `${path}[]`);
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => schemaFields(option, path));
  if (!(schema instanceof z.ZodObject)) return [];
  return Object.entries(schema.shape).flatMap(([name, field]) => {
    const below = path === "" ? name : `${path}.${name}`;
    const meta = z.globalRegistry.get(field);
    return [{ path: below, name, kind: kindWithin(field), meta }, ...schemaFields(field, below)];
  });
}

/** The mark of a field, of its entries or of its values. */
function kindWithin(schema: z.core.$ZodType): SecretKind | undefined {
  const inner = innerOf(schema);
  const below =
    schema instanceof z.ZodArray ? schema.element : schema instanceof z.ZodRecord ? schema.valueType : inner;
  return secretKind(schema) ?? (below === undefined ? undefined : kindWithin(below));
}

/** The schema inside one that only wraps it. Undefined for any other schema. */
function innerOf(schema: z.core.$ZodType): z.core.$ZodType | undefined {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodNullable
  )
    return schema.unwrap();
  if (!(schema instanceof z.ZodPipe)) return undefined;
  // A preprocessed value is described by the schema after it, a transformed one by the schema before.
  return schema.in instanceof z.ZodTransform ? schema.out : schema.in;
}
