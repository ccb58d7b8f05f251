import { type Issue, isJsonObject, type ToolSpec } from "@ambit/core/contract";

const typeNames = new Set(["array", "boolean", "integer", "null", "number", "object", "string"]);

type Rule = readonly [accepts: (value: unknown) => boolean, expected: string];

const isSchema = (value: unknown) => isJsonObject(value) || typeof value === "boolean";
const isText = (value: unknown) => typeof value === "string";
const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 0;
const isTypeName = (value: unknown) => typeof value === "string" && typeNames.has(value);

const schema: Rule = [isSchema, "must be a schema: an object or a boolean"];
const schemaList: Rule = [
  (value) => Array.isArray(value) && value.length > 0 && value.every(isSchema),
  "must be a list of schemas",
];
const schemaMap: Rule = [isJsonObject, "must be an object of schemas"];
const text: Rule = [isText, "must be a string"];
const count: Rule = [isCount, "must be a whole number of at least 0"];
const number: Rule = [(value) => typeof value === "number", "must be a number"];

/** What each keyword may hold, in JSON Schema 2020-12 and draft-07: an argument check couldn't be compiled otherwise. */
const rules: Readonly<Record<string, Rule>> = {
  type: [
    (value) => isTypeName(value) || (Array.isArray(value) && value.length > 0 && value.every(isTypeName)),
    `must be one or a list of ${[...typeNames].join(", ")}`,
  ],
  required: [(value) => Array.isArray(value) && value.every(isText), "must be a list of names"],
  enum: [Array.isArray, "must be a list of values"],
  items: [
    (value) => isSchema(value) || (Array.isArray(value) && value.every(isSchema)),
    "must be a schema, or in draft-07 a list of schemas",
  ],
  ...each(["$ref", "$id", "$comment", "title", "description", "pattern", "format"], text),
  ...each(["maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"], count),
  ...each(["maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"], number),
  ...each(["properties", "patternProperties", "$defs", "definitions"], schemaMap),
  ...each(["allOf", "anyOf", "oneOf", "prefixItems"], schemaList),
  ...each(["additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"], schema),
};

function each(keywords: readonly string[], rule: Rule): Record<string, Rule> {
  return Object.fromEntries(keywords.map((keyword) => [keyword, rule]));
}

/**
 * The keywords of the tools' schemas that hold something else than JSON Schema says. Unknown keywords are annotations.
 * Pure; takes time in proportion to the request, whose depth is limited before.
 */
export function misshapenSchemas(tools: readonly Pick<ToolSpec, "inputSchema">[]): Issue[] {
  return tools.flatMap(({ inputSchema }, index) =>
    misshapenIn(inputSchema, `customTools[${index}].inputSchema`),
  );
}

function misshapenIn(value: unknown, path: string): Issue[] {
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([keyword, held]) => {
    const at = `${path}.${keyword}`;
    const rule = Object.hasOwn(rules, keyword) ? rules[keyword] : undefined;
    if (rule === undefined) return [];
    const [accepts, expected] = rule;
    if (!accepts(held)) return [{ path: at, message: `${expected} (JSON Schema)` }];
    if (rule === schemaMap) return inMap(held, at);
    if (Array.isArray(held) && (rule === schemaList || keyword === "items"))
      return held.flatMap((one, index) => misshapenIn(one, `${at}[${index}]`));
    return rule === schema || keyword === "items" ? misshapenIn(held, at) : [];
  });
}

function inMap(map: unknown, path: string): Issue[] {
  if (!isJsonObject(map)) return [];
  return Object.entries(map).flatMap(([name, value]) => {
    const at = `${path}.${name}`;
    return isSchema(value) ? misshapenIn(value, at) : [{ path: at, message: `${schema[1]} (JSON Schema)` }];
  });
}
