/**
 * What the schema says about one field of a request, in the metadata of its zod schema.
 *
 * - `path`: as in `customTools[].callRef`, where `[]` means each entry of a list.
 * - `description`: a sentence: what the field does; or why it has no effect or can't be used, and what to do instead.
 * - `effect`: `acts`: it changes the run · `informational`: it is accepted and has no effect · `refused`: a value in it
 *   refuses the request.
 * @typedef {{
 *   readonly path: string,
 *   readonly description: string,
 *   readonly effect: "acts" | "informational" | "refused",
 * }} Field
 */

/**
 * Every documented field of a request, in the schema's order.
 *
 * @param {readonly import("../../core/dist/contract/index.js").SchemaField[]} schemaFields of `runRequestSchema`
 * @returns {readonly Field[]}
 */
export function requestFields(schemaFields) {
  /** @type {Map<string, Field>} */
  const fields = new Map();
  for (const { path, meta } of schemaFields) {
    const { description, effect = "acts" } = meta ?? {};
    if (description === undefined) continue;
    if (effect !== "acts" && effect !== "informational" && effect !== "refused")
      throw new TypeError(`${path} has the effect '${effect}': expected acts, informational or refused`);
    const other = fields.get(path)?.description;
    // Variants of a union may have a field each: both describe it.
    fields.set(path, {
      path,
      effect,
      description: other === undefined ? description : `${other} ${description}`,
    });
  }
  return [...fields.values()];
}
