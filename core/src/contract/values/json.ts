import { z } from "zod";

export type JsonObject = { readonly [key: string]: unknown };

/**
 * A JSON object that is passed on unchanged: tool arguments, JSON Schemas, opaque context. Its contents are neither
 * checked nor copied.
 */
export const jsonObjectSchema = z
  .custom<Record<string, unknown>>(isJsonObject, { error: "must be an object" })
  .meta({ type: "object" });

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
