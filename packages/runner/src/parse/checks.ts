/** What the schema of a request doesn't say: names that repeat, paths that clash, misshapen JSON Schemas. */

import { type Issue, isJsonObject, type JsonObject, maxIssues, type ToolSpec } from "@ambit/core/contract";

/** Generated from the skill itself, so no other file may have its name. */
const skillFileName = "SKILL.md";

/**
 * Checks that names and paths in a list are unique, and that the paths fit into one folder tree. Reads
 * the request as it was sent, so that a fault elsewhere doesn't hide what is found here.
 */
export function repeatedNames(request: unknown): Issue[] {
  if (!isJsonObject(request)) return [];
  return [
    ...repeatedIn(request.customTools, "name", "customTools"),
    ...repeatedIn(request.mcpServers, "name", "mcpServers"),
    ...repeatedIn(request.skills, "name", "skills"),
    ...repeatedIn(request.credentials, "name", "credentials"),
    ...repeatedIn(request.ports, "port", "ports"),
    ...repeatedIn(request.ports, "name", "ports"),
    ...repeatedVariables(request.sandboxCredentials),
    ...headersTwice(request),
    ...clashesIn(request.harnessFiles, "harnessFiles"),
    ...listOf(request.skills).flatMap((skill, index) =>
      isJsonObject(skill) ? clashesIn(skill.files, `skills[${index}].files`, skillFileName) : [],
    ),
  ];
}

function repeatedVariables(credentials: unknown): Issue[] {
  const bindings = listOf(credentials).map((one) => (isJsonObject(one) ? one.binding : undefined));
  return repeatedIn(bindings, "name", "sandboxCredentials").map(({ path, message }) => ({
    path: path.replace("].name", "].binding.name"),
    message: message.replace("].name", "].binding.name"),
  }));
}

/** A header that is both public and secret: whichever were sent, the other one would be lost. */
function headersTwice({ mcpServers, modelConnection }: JsonObject): Issue[] {
  const issues: Issue[] = [];
  const compare = (headers: ReadonlyMap<string, string>, name: unknown, path: string, place: string) => {
    const twin = typeof name === "string" ? headers.get(name.toLowerCase()) : undefined;
    if (twin === undefined) return;
    issues.push({ path, message: `is the header ${place}.${twin} too: send it once, as a secret` });
  };
  for (const [index, server] of listOf(mcpServers).entries()) {
    const connection = isJsonObject(server) ? server.connection : undefined;
    if (!isJsonObject(connection)) continue;
    const place = `mcpServers[${index}].connection`;
    const headers = namesIn(connection.headers);
    const first = new Set<string>();
    for (const [at, credential] of listOf(connection.credentials).entries()) {
      const binding = isJsonObject(credential) ? credential.binding : undefined;
      const name = isJsonObject(binding) ? binding.name : undefined;
      const path = `${place}.credentials[${at}].binding.name`;
      compare(headers, name, path, `${place}.headers`);
      const header = typeof name === "string" ? name.toLowerCase() : undefined;
      if (header === undefined) continue;
      if (first.has(header)) issues.push({ path, message: "is the header of another credential too" });
      first.add(header);
    }
  }
  if (!isJsonObject(modelConnection)) return issues;
  const { endpoint, gatewayCredentials } = modelConnection;
  if (!isJsonObject(endpoint) || !isJsonObject(gatewayCredentials)) return issues;
  const path = "modelConnection.gatewayCredentials.header";
  compare(namesIn(endpoint.headers), gatewayCredentials.header, path, "modelConnection.endpoint.headers");
  return issues;
}

/** Headers as they are written, by their names in lower case. A request may have thousands, and as many credentials. */
function namesIn(headers: unknown): ReadonlyMap<string, string> {
  const names = isJsonObject(headers) ? Object.keys(headers).toReversed() : [];
  return new Map(names.map((name) => [name.toLowerCase(), name]));
}

function repeatedIn(list: unknown, key: string, path: string, same = (name: string) => name): Issue[] {
  if (!Array.isArray(list) || list.length < 2) return [];
  const first = new Map<string, number>();
  const issues: Issue[] = [];
  for (const [index, entry] of listOf(list).entries()) {
    const name = isJsonObject(entry) ? entry[key] : undefined;
    if (typeof name !== "string" && typeof name !== "number") continue;
    const form = same(String(name));
    const earlier = first.get(form);
    if (earlier === undefined) first.set(form, index);
    else {
      const message = `is the same as ${path}[${earlier}].${key}: every ${key} must be unique`;
      issues.push({ path: `${path}[${index}].${key}`, message });
      if (issues.length > maxIssues) break;
    }
  }
  return issues;
}

/** Two files with one path, or a file where another one needs a folder. */
function clashesIn(list: unknown, path: string, taken?: string): Issue[] {
  const issues = repeatedIn(list, "path", path, inNormalForm);
  const files = new Map<string, number>();
  for (const [index, entry] of listOf(list).entries()) {
    if (!isJsonObject(entry) || typeof entry.path !== "string") continue;
    const file = inNormalForm(entry.path);
    files.set(`${file}/`, index);
    if (file !== taken) continue;
    const message = "is generated from the skill's name, description and body: give the file another name";
    issues.push({ path: `${path}[${index}].path`, message });
  }
  // After sorting, everything below a file comes right after it.
  let above: string | undefined;
  for (const file of [...files.keys()].sort()) {
    if (above === undefined || !file.startsWith(above)) above = file;
    else {
      const message = `is inside ${path}[${files.get(above)}].path, which is a file: rename one of them`;
      issues.push({ path: `${path}[${files.get(file)}].path`, message });
      if (issues.length > maxIssues) break;
    }
  }
  return issues;
}

/** The path without empty and `.` segments. Node's own form of a path with thousands of segments takes a hundred times as long. */
function inNormalForm(path: string): string {
  if (!/(?:^|\/)\.?(?:\/|$)/.test(path)) return path;
  return path
    .split("/")
    .filter((segment) => segment !== "" && segment !== ".")
    .join("/");
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

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
