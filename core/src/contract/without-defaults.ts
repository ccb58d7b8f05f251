import { isJsonObject, type JsonObject } from "./json.js";

/**
 * The schema without its `default`s: generators of clients take a field that has one for always present, and would ask
 * callers for what they may leave out. The fields' descriptions say what their defaults are.
 */
export function withoutDefaults(schema: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([keyword]) => keyword !== "default")
      .map(([keyword, value]) => [keyword, withoutDefaultsIn(keyword, value)]),
  );
}

function withoutDefaultsIn(keyword: string, value: unknown): unknown {
  switch (keyword) {
    case "properties":
    case "$defs":
      return mapped(value);
    case "items":
    case "additionalProperties":
    case "propertyNames":
    case "not":
      return ofSchema(value);
    case "anyOf":
    case "oneOf":
    case "allOf":
    case "prefixItems":
      return Array.isArray(value) ? value.map(ofSchema) : value;
    default:
      // `enum`, `const`, `required`, … hold values, not schemas.
      return value;
  }
}

function mapped(value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, ofSchema(schema)]));
}

function ofSchema(value: unknown): unknown {
  return isJsonObject(value) ? withoutDefaults(value) : value;
}
