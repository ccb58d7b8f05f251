import type { NonEmptyArray } from "@ambit/attacks";
import type { PublishedTool } from "@ambit/core/plugin";

/** Tools whose schemas a careless delivery would change: by parsing and serialising, truncating or rewording them. */
export const hardTools: NonEmptyArray<PublishedTool> = [
  {
    name: "plain",
    description: "Takes anything",
    inputSchema: { type: "object", properties: {}, additionalProperties: true },
    readOnly: true,
  },
  {
    name: "Dotted.name_with-all.9",
    description: 'Zeilen\nund ☃, "quotes" und \\',
    inputSchema: {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      title: "A title",
      definitions: { node: { type: "object", properties: { next: { $ref: "#/definitions/node" } } } },
      properties: {
        node: { $ref: "#/definitions/node" },
        either: {
          oneOf: [
            { type: "string", pattern: "^a+$" },
            { type: "integer", minimum: 0 },
          ],
        },
        constant: { const: null },
        listed: { enum: [1, "two", null, { three: 3 }] },
        "key with spaces and ☃": { type: "array", prefixItems: [{ type: "number" }], items: false },
        nullable: { type: ["string", "null"], default: null, examples: ["x"] },
      },
      required: ["node", "key with spaces and ☃"],
      patternProperties: { "^x-": true },
      additionalProperties: false,
      "x-vendor": { kept: [true] },
    },
  },
  { name: "bare", inputSchema: { type: "object" } },
];

/** The fields of a tool's specification that only the runner may see. */
export function privateFields(secret: string) {
  return {
    kind: "callback",
    callRef: `ref-${secret}`,
    code: `print("${secret}")`,
    env: { TOKEN: secret },
    contextBindings: { [secret]: "$ctx.x" },
    options: { credential: secret },
  };
}
