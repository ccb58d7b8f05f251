import { isJsonObject, runRequestSchema, schemaFields, suggestsSecret } from "@ambit/core";
import { configurationSchema } from "../configuration/schema.js";

/** Levels of objects in an entry's fields. What is deeper was not made by the runner; it is searched by value. */
const maxLevels = 4;

/** Names of fields that hold a secret as a whole: of a URL only parts do, which are searched by value. */
const secretNames = new Set(
  [runRequestSchema, configurationSchema]
    .flatMap((schema) => schemaFields(schema))
    .flatMap(({ name, kind }) => (kind === undefined || kind === "url" || kind === "address" ? [] : [name])),
);

/** An entry's fields without those that always hold a secret. `LogRedaction` finds secrets that are known by value. Pure. */
export function withoutSecrets(fields: object, levels = maxLevels): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (secretNames.has(name) || suggestsSecret(name)) return [name, "[redacted]"];
      const isOfFields = isJsonObject(value) && !(value instanceof Error) && levels > 1;
      return [name, isOfFields ? withoutSecrets(value, levels - 1) : value];
    }),
  );
}
