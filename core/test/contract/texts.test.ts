import { expect, it } from "vitest";
import { z } from "zod";
import { runRequestSchema } from "../../src/contract/index.js";

type Schema = z.core.JSONSchema.BaseSchema;
/** A request with this text at one place. */
type Build = (text: string) => unknown;
interface Place {
  readonly path: string;
  readonly build: Build;
}

const { $defs = {}, ...root } = z.toJSONSchema(runRequestSchema, { io: "input", unrepresentable: "any" });
const isSchema = (value: unknown): value is Schema => typeof value === "object" && value !== null;
const resolved = (schema: Schema): Schema => {
  const named = $defs[schema.$ref?.replace("#/$defs/", "") ?? ""];
  return isSchema(named) ? named : schema;
};
const alternativesOf = ({ anyOf, oneOf, allOf }: Schema) =>
  [anyOf, oneOf, allOf].flatMap((some) => some ?? []);

/** The least that a schema asks for. */
function smallest(given: Schema, depth = 0): unknown {
  const schema = resolved(given);
  const [first] = alternativesOf(schema).filter(isSchema);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  if (first !== undefined && depth < 10) return smallest(first, depth + 1);
  if (schema.type === "object") {
    const properties = (schema.required ?? []).map((name) => [name, schema.properties?.[name]] as const);
    return Object.fromEntries(
      properties.map(([name, one]) => [name, isSchema(one) ? smallest(one, depth + 1) : "x"]),
    );
  }
  if (schema.type === "array") return [];
  if (schema.type === "boolean") return true;
  if (schema.type === "integer" || schema.type === "number") return schema.minimum ?? 1;
  return "https://host.example/x";
}

/** Every place of a request where a text, or the name of a key, is free. */
function placesIn(
  given: Schema,
  path: string,
  build: (value: unknown) => unknown,
  above: readonly Schema[],
): Place[] {
  const schema = resolved(given);
  if (above.includes(schema)) return [];
  const within = [...above, schema];
  const below = (one: unknown, name: string, put: (value: unknown) => unknown) =>
    isSchema(one) ? placesIn(one, path + name, put, within) : [];
  const object = schema.type === "object" ? Object(smallest(schema)) : {};
  const { properties = {}, additionalProperties: others, items, type } = schema;
  const isFreeText = type === "string" && schema.enum === undefined && schema.const === undefined;
  return [
    ...(isFreeText ? [{ path, build }] : []),
    ...alternativesOf(schema).flatMap((one) => below(one, "", build)),
    ...Object.entries(properties).flatMap(([name, one]) =>
      below(one, `.${name}`, (value) => build({ ...object, [name]: value })),
    ),
    ...(isSchema(others)
      ? [{ path: `${path}{}`, build: (text: string) => build({ ...object, [text]: smallest(others) }) }]
      : []),
    ...below(others, ".*", (value) => build({ ...object, K: value })),
    ...below(items, "[]", (value) => build([value])),
  ];
}

const shortest = { harness: "demo", messages: [{ role: "user", content: "x" }] };
const places = placesIn(root, "", (value) => ({ ...shortest, ...Object(value) }), []);

const length = 50_000;
const repeated = (part: string) => part.repeat(Math.ceil(length / part.length));
/** What expressions that look at one character several times take longest for. */
const texts = [
  ...[
    "a",
    " ",
    ".",
    "/",
    "-",
    "=",
    ":",
    "@",
    "*",
    "\\",
    "1",
    ",",
    "\n",
    "\t",
    "_",
    '"',
    "é",
    "\ud800",
  ].flatMap((one) => [
    `${repeated(one)}\0\0`,
    `a${repeated(one)}x/`,
    `[${repeated(one)}!`,
    `https://host.example/${repeated(one)}x`,
  ]),
  ...["a.", "../", "/a", "a-", "%2", "a=b;", "a:@", "*."].map((one) => `${repeated(one)}\0`),
];

function timeOf(build: Build, text: string): number {
  const request = build(text);
  const startedAt = performance.now();
  runRequestSchema.safeParse(request);
  return performance.now() - startedAt;
}

it("reads every text of a request in time with its length, also one that is too long", () => {
  expect(places.length).toBeGreaterThan(130);
  const slow = places.flatMap(({ path, build }) =>
    texts.flatMap((text) => {
      const best = (count: number, some: string) =>
        Math.min(...Array.from({ length: count }, () => timeOf(build, some)));
      const plain = Math.max(best(3, repeated("a")), 0.05);
      // A thousand times that of a plain text: the square of its length is far above.
      const isSlow = timeOf(build, text) > 1_000 * plain && best(3, text) > 1_000 * plain;
      return isSlow ? [`${path}: ${JSON.stringify(text.slice(0, 30))}`] : [];
    }),
  );
  expect(slow).toEqual([]);
});

it.each(["printf x\0", "\0", " \n", ""])("takes no setup command %j", (command) => {
  const { success, error } = runRequestSchema.safeParse({
    ...shortest,
    environment: { setup: [command] },
  });
  expect(success).toBe(false);
  expect(error?.issues).toMatchObject([
    { path: ["environment", "setup", 0], message: "must be a command, without NUL" },
  ]);
});
