import { z } from "zod";

export type JsonObject = { readonly [key: string]: unknown };

/**
 * A JSON object whose inside is not ours to judge: tool arguments, JSON Schemas, opaque context. Passed on as it
 * is: a thousand JSON Schemas are not walked, and not copied.
 */
export const jsonObjectSchema = z
  .custom<Record<string, unknown>>(isJsonObject, { error: "must be an object" })
  .meta({ type: "object" });

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
