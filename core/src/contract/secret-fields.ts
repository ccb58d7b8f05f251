import { z } from "zod";
import { isJsonObject } from "./values/json.js";
import { type SecretKind, secretKind } from "./values/secret.js";

/** The value of a field that its schema marks as a secret. */
export interface MarkedValue {
  readonly kind: SecretKind;
  readonly value: unknown;
}

type Collect = (value: unknown, found: MarkedValue[]) => void;

/** Finds the values of marked fields. Visits only what leads to one. Pure. */
export function markedValues(schema: z.core.$ZodType): (value: unknown) => readonly MarkedValue[] {
  const collect = collectorOf(schema);
  return (value) => {
    const found: MarkedValue[] = [];
    collect?.(value, found);
    return found;
  };
}

/** Undefined where nothing below is marked. */
function collectorOf(schema: z.core.$ZodType): Collect | undefined {
  const kind = secretKind(schema);
  if (kind !== undefined)
    return (value, found) => {
      if (value !== undefined) found.push({ kind, value });
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
  return (value, found) => {
    for (const collect of options) collect(value, found);
  };
}

function ofObject(schema: z.ZodObject): Collect | undefined {
  const fields = Object.entries(schema.shape).flatMap(([name, field]) => {
    const collect = collectorOf(field);
    return collect === undefined ? [] : [{ name, collect }];
  });
  if (fields.length === 0) return undefined;
  return (value, found) => {
    if (!isJsonObject(value)) return;
    for (const { name, collect } of fields) if (Object.hasOwn(value, name)) collect(value[name], found);
  };
}

function ofEach(
  schema: z.core.$ZodType,
  entriesOf: (value: unknown) => readonly unknown[],
): Collect | undefined {
  const collect = collectorOf(schema);
  if (collect === undefined) return undefined;
  return (value, found) => {
    for (const entry of entriesOf(value)) collect(entry, found);
  };
}

/** A field of a schema, at any depth. */
export interface SchemaField {
  /** `mcpServers[].connection.env`; the values of a record are `[]` too. */
  readonly path: string;
  readonly name: string;
  /** Undefined for one that isn't marked, nor its values. */
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

/** Of a schema that adds something to another one. */
function innerOf(schema: z.core.$ZodType): z.core.$ZodType | undefined {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodNullable
  )
    return schema.unwrap();
  if (!(schema instanceof z.ZodPipe)) return undefined;
  // Of a preprocessed value, the schema comes after; of a transformed one, before.
  return schema.in instanceof z.ZodTransform ? schema.out : schema.in;
}
