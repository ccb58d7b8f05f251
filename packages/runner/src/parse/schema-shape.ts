import { type Issue, isJsonObject, maxIssues, type ToolSpec } from "@ambit/core/contract";

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
const rules: ReadonlyMap<string, Rule> = new Map(
  Object.entries<Rule>({
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
  }),
);

function each(keywords: readonly string[], rule: Rule): Record<string, Rule> {
  return Object.fromEntries(keywords.map((keyword) => [keyword, rule]));
}

/**
 * The keywords of the tools' schemas that hold something else than JSON Schema says. Unknown keywords are annotations.
 * Pure; takes time in proportion to the request, whose depth is limited before.
 */
export function misshapenSchemas(tools: readonly Pick<ToolSpec, "inputSchema">[]): Issue[] {
  const issues: Issue[] = [];
  for (const [index, { inputSchema }] of tools.entries())
    search(inputSchema, { key: `customTools[${index}].inputSchema` }, issues);
  return issues;
}

/** Where a value stands in the request. Written out only for an issue: most schemas have none. */
interface Place {
  readonly key: string | number;
  readonly above?: Place;
}

function search(value: unknown, above: Place, issues: Issue[]): void {
  if (!isJsonObject(value) || issues.length > maxIssues) return;
  for (const keyword of Object.keys(value)) {
    const rule = rules.get(keyword);
    if (rule === undefined) continue;
    const held = value[keyword];
    const place = { key: keyword, above };
    const [accepts, expected] = rule;
    if (!accepts(held)) issues.push(issueAt(place, expected));
    else if (rule === schemaMap) searchMap(held, place, issues);
    else if (Array.isArray(held) && (rule === schemaList || keyword === "items"))
      for (const [key, one] of held.entries()) search(one, { key, above: place }, issues);
    else if (rule === schema || keyword === "items") search(held, place, issues);
  }
}

function searchMap(map: unknown, above: Place, issues: Issue[]): void {
  if (!isJsonObject(map)) return;
  for (const key of Object.keys(map)) {
    const place = { key, above };
    if (isSchema(map[key])) search(map[key], place, issues);
    else issues.push(issueAt(place, schema[1]));
  }
}

function issueAt(place: Place, expected: string): Issue {
  const steps: string[] = [];
  for (let at: Place | undefined = place; at !== undefined; at = at.above)
    steps.unshift(
      typeof at.key === "number" ? `[${at.key}]` : at.above === undefined ? at.key : `.${at.key}`,
    );
  return { path: steps.join(""), message: `${expected} (JSON Schema)` };
}
