import { z } from "zod";

/** What the schema says about one field of a request, in the metadata of its zod schema. */
const fieldMetaSchema = z.object({
  /** A sentence: what the field does; or why it has no effect or can't be used, and what to do instead. */
  description: z.string(),
  /**
   * `acts`: it changes the run · `informational`: it is accepted and has no effect · `refused`: a value in it refuses
   * the request.
   */
  effect: z.enum(["acts", "informational", "refused"]).default("acts"),
});

/**
 * `path` is as in `customTools[].callRef`, where `[]` means each entry of a list.
 * @typedef {z.output<typeof fieldMetaSchema> & { readonly path: string }} Field
 */

/**
 * Every field of a request, in the schema's order.
 *
 * @param {z.core.$ZodType} requestSchema `runRequestSchema`
 * @returns {readonly Field[]}
 */
export function requestFields(requestSchema) {
  /** @type {Map<string, Field>} */
  const fields = new Map();
  for (const field of fieldsOf(requestSchema, "")) {
    const other = fields.get(field.path);
    // Variants of a union may have a field each: both describe it.
    const description = other === undefined ? field.description : `${other.description} ${field.description}`;
    fields.set(field.path, { ...other, ...field, description });
  }
  return [...fields.values()];
}

/** @returns {Field[]} */
function fieldsOf(/** @type {z.core.$ZodType} */ schema, /** @type {string} */ path) {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) {
    return fieldsOf(schema.unwrap(), path);
  }
  if (schema instanceof z.ZodArray) return fieldsOf(schema.element, `${path}[]`);
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => fieldsOf(option, path));
  if (!(schema instanceof z.ZodObject) || !(schema.def.catchall instanceof z.ZodNever)) return [];
  return Object.entries(schema.shape).flatMap(([key, field]) => {
    const below = path === "" ? key : `${path}.${key}`;
    return [
      { path: below, ...fieldMetaSchema.parse(z.globalRegistry.get(field)) },
      ...fieldsOf(field, below),
    ];
  });
}
