import { z } from "zod";
import { runRequestSchema } from "./request/request.js";
import { type SchemaField, schemaFields } from "./schema-fields.js";
import { suggestsSecret } from "./values/secret.js";

/**
 * Fields that a dialect adds to requests, by the path of their object without indices: `""` for the request itself,
 * `messages[]`, `modelConnection`. Each schema is optional and documented by `.meta({ description, effect })`.
 */
export type DialectFields = Readonly<Record<string, Readonly<Record<string, z.ZodType>>>>;

export type RunRequestSchema = typeof runRequestSchema;

/** The schema of requests that may also have these fields. Its output is a `RunRequest` that keeps their values. Pure. */
export function requestSchemaWith(fields: readonly DialectFields[]): RunRequestSchema {
  return fields.length === 0 ? runRequestSchema : extended(runRequestSchema, "", fields);
}

/**
 * What is wrong with the fields of a dialect, each as a phrase; empty where they can be added. Pure.
 *
 * @param earlier the fields of dialects that were loaded before.
 */
export function dialectFieldProblems(fields: DialectFields, earlier: readonly DialectFields[]): string[] {
  const before = requestSchemaWith(earlier);
  const taken = new Set(schemaFields(before).map(({ path }) => path));
  const added = schemaFields(requestSchemaWith([...earlier, fields]));
  return Object.entries(fields).flatMap(([place, shape]) =>
    Object.entries(shape).flatMap(([name, schema]) => {
      const path = pathBelow(place, name);
      if (taken.has(path)) return [`\`${path}\` is a field of requests already`];
      const within = added.filter((field) => field.path === path || field.path.startsWith(`${path}.`));
      if (within.length === 0) return [`\`${path}\` is in no object of the contract`];
      if (!schema.safeParse(undefined).success) return [`\`${path}\` isn't optional`];
      const credential = within.find(isCredential);
      if (credential === undefined) return [];
      return [`\`${credential.path}\` carries a credential: translate it into a field of the contract`];
    }),
  );
}

function isCredential({ kind, name }: SchemaField): boolean {
  return kind !== undefined || suggestsSecret(name);
}

/** Returns a copy of the schema with the fields that belong below this place, or the schema itself if none does. */
function extended<Schema extends z.core.$ZodType>(
  schema: Schema,
  place: string,
  fields: readonly DialectFields[],
): Schema {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    const inner = schema.unwrap();
    const innerType = extended(inner, place, fields);
    return innerType === inner ? schema : changed(schema, { innerType });
  }
  if (schema instanceof z.ZodArray) {
    const element = extended(schema.element, `${place}[]`, fields);
    return element === schema.element ? schema : changed(schema, { element });
  }
  if (schema instanceof z.ZodObject) {
    const added = Object.assign({}, ...fields.map((byPlace) => byPlace[place]));
    const shape = Object.entries<z.core.$ZodType>(schema.shape).map(
      ([name, field]) => [name, field, extended(field, pathBelow(place, name), fields)] as const,
    );
    if (Object.keys(added).length === 0 && shape.every(([, field, current]) => field === current))
      return schema;
    const current = Object.fromEntries(shape.map(([name, , field]) => [name, field]));
    return changed(schema, { shape: { ...current, ...added } });
  }
  return schema;
}

function changed<Schema extends z.core.$ZodType>(schema: Schema, difference: object): Schema {
  const copy = z.core.clone(schema, { ...schema._zod.def, ...difference });
  const meta = z.globalRegistry.get(schema);
  if (meta !== undefined) z.globalRegistry.add(copy, meta);
  return copy;
}

function pathBelow(place: string, name: string): string {
  return place === "" ? name : `${place}.${name}`;
}
