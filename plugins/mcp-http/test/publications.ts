import type { Publication, PublishedCall, PublishedOutcome, PublishedServer } from "@ambit/core/plugin";
import { configSchema, type McpHttpConfig, McpHttpDelivery } from "../src/index.js";
import { type TestScope, testScope } from "./sandbox.js";

/** A schema with everything that careless code would change. */
export const weirdSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  $defs: { city: { type: "string", minLength: 1, "x-own": { deep: [1, null] } } },
  type: "object",
  properties: { city: { $ref: "#/$defs/city" }, when: { anyOf: [{ type: "null" }, { const: 0 }] } },
  required: ["city"],
  additionalProperties: false,
  "x-vendor": "kept",
} as const;

export const tools: Publication["tools"] = [
  { name: "weather", description: "The weather", inputSchema: weirdSchema, readOnly: true },
  { name: "book.table-2", inputSchema: { type: "object", properties: {} }, readOnly: false },
  { name: "bare", inputSchema: { properties: { a: {} } } },
];

export interface Published extends PublishedServer {
  readonly scope: TestScope;
  readonly calls: PublishedCall[];
}

export async function publish(
  call: (call: PublishedCall) => Promise<PublishedOutcome> = echo,
  more: {
    config?: Partial<McpHttpConfig>;
    careless?: boolean;
    tools?: Publication["tools"];
    noting?: boolean;
    watch?: NonNullable<Publication["watch"]>;
  } = {},
): Promise<Published> {
  const scope = testScope(more);
  const calls: PublishedCall[] = [];
  const noting = more.noting ?? true;
  const delivery = new McpHttpDelivery(configSchema.parse(more.config ?? {}));
  const publication: Publication = {
    name: "ambit",
    tools: more.tools ?? tools,
    ...(more.watch === undefined ? {} : { watch: more.watch }),
    call: (one) => {
      if (noting) calls.push(one);
      return call(one);
    },
  };
  return { ...(await delivery.publish(publication, scope)), scope, calls };
}

export const echo = ({ name, arguments: given }: PublishedCall): Promise<PublishedOutcome> =>
  Promise.resolve({ output: `${name} ${JSON.stringify(given)}`, isError: false });
