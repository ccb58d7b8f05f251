/**
 * @typedef {typeof import("../../core/dist/contract/index.js").agentEventSchema} EventSchema
 * @typedef {ReturnType<EventSchema["toJSONSchema"]>} JsonSchema
 * @typedef {{ readonly type: string, readonly fields: string }} EventRow
 */

/**
 * Every event with its fields, as in `` `id`: string, `input`?: any ``.
 *
 * @param {EventSchema} eventSchema
 * @returns {readonly EventRow[]}
 */
export function eventRows(eventSchema) {
  const { oneOf = [] } = eventSchema.toJSONSchema({ io: "output", unrepresentable: "any" });
  return oneOf.map(({ properties = {}, required = [] }) => {
    const { type, ...fields } = properties;
    const texts = Object.entries(fields).map(
      ([name, field]) => `\`${name}\`${required.includes(name) ? "" : "?"}: ${typeOf(field)}`,
    );
    if (typeof type !== "object") throw new TypeError("an event has no type");
    return { type: String(type.const), fields: texts.join(", ") };
  });
}

/** @returns {string} */
function typeOf(/** @type {NonNullable<JsonSchema["properties"]>[string]} */ field) {
  if (typeof field === "boolean") return "any";
  if (field.enum !== undefined) return field.enum.map((value) => `\`${String(value)}\``).join(" or ");
  return field.type === undefined ? "any" : [field.type].flat().join(" or ");
}
