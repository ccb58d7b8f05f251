import { once } from "node:events";
import http from "node:http";
import {
  type ConformanceCheck,
  conformanceProgram,
  contradictionsOf,
  type Exceptions,
  runConformance,
} from "@ambit/fakes/mcp-conformance";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Published, publish } from "./publications.js";

const program = conformanceProgram();

/** The tools that the suite needs, as far as a publication can offer them: text in, text out. */
const tools = [
  { name: "test_simple_text", description: "For the suite", inputSchema: { type: "object" } },
  { name: "test_error_handling", description: "For the suite", inputSchema: { type: "object" } },
  { name: "test_tool_with_progress", description: "For the suite", inputSchema: { type: "object" } },
  {
    name: "json_schema_2020_12_tool",
    description: "For the suite",
    inputSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: {
          $anchor: "addressDef",
          type: "object",
          properties: { street: { type: "string" }, city: { type: "string" } },
        },
      },
      properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" },
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      // biome-ignore lint/suspicious/noThenProperty: JSON Schema names it so.
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
  },
];

/** The suite can't send extra headers, so this relay adds the token. */
async function relayTo({ url, headers }: Published): Promise<string> {
  const { port } = new URL(url);
  const relay = http.createServer((incoming, outgoing) => {
    const onward = http.request(
      {
        host: "127.0.0.1",
        port,
        path: incoming.url,
        method: incoming.method,
        headers: { ...incoming.headers, authorization: headers.Authorization },
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  });
  relay.listen(0, "127.0.0.1");
  await once(relay, "listening");
  onTestFinished(async () => {
    relay.closeAllConnections();
    relay.close();
    await once(relay, "close");
  });
  const address = relay.address();
  if (address === null || typeof address === "string") throw new TypeError("the relay has no port");
  return `http://127.0.0.1:${address.port}/mcp`;
}

const common: Exceptions = [
  [/^(resources|prompts)-/, "a publication has tools only, and no resources or prompts"],
  [/^completion-complete:/, "a publication has no prompts or resources whose arguments it could complete"],
  [/^tools-call-(image|audio|embedded-resource|mixed-content):/, "a tool's output is a text"],
];
const former: Exceptions = [
  ...common,
  [/^(logging-set-level|tools-call-with-logging):/, "tools write no logs for the agent"],
  [/^tools-call-sampling:/, "tools don't use the agent's model"],
  [/^(tools-call-elicitation|elicitation-.+):/, "a tool asks its user by the run, not by the agent"],
];

/** Checks that don't pass, by their scenarios, with the reason. Any other must pass, and none of these. */
const exceptions: Readonly<Record<string, Exceptions>> = {
  "2025-06-18": former,
  "2025-11-25": [
    ...former,
    [
      /^server-sse-(polling|multiple-streams):/,
      "the endpoint is stateless: there is no session, nor a stream to resume",
    ],
  ],
  "2026-07-28": [
    ...common,
    [/^caching:sep-2549-(prompts|resources)/, "a publication has tools only, and no resources or prompts"],
    [
      /^sep-2164-.+:sep-2164-(error-code|data-uri)$/,
      "a publication has tools only, and no resources or prompts",
    ],
    [
      /^input-required-result-(?!validate-input|unsupported-methods)/,
      "a tool asks its user by the run, not by the agent",
    ],
    [
      /^server-stateless:.+-(rejects-undeclared-capability|capability-http-400)$/,
      "no tool needs a capability",
    ],
    [
      /^server-stateless:.+-no-independent-requests-on-stream$/,
      "a tool asks its user by the run, not by the agent",
    ],
    [/^server-stateless:.+-no-log-without-loglevel$/, "tools write no logs for the agent"],
    [/^http-custom-header-server-validation:/, "arguments are read from the body alone"],
  ],
};

/** The checks of each scenario. */
async function checksOf(
  suite: string,
  version: string,
): Promise<ReadonlyMap<string, readonly ConformanceCheck[]>> {
  const published = await publish(
    async ({ name }) => {
      if (name === "test_tool_with_progress") await new Promise((resolve) => setTimeout(resolve, 300));
      return name === "test_error_handling"
        ? { output: "This tool intentionally returns an error for testing", isError: true }
        : { output: "This is a simple text response for testing.", isError: false };
    },
    { tools, config: { heartbeatMs: 20 } },
  );
  const url = await relayTo(published);
  return await runConformance(suite, ["server", "--url", url, "--spec-version", version, "--suite", "all"]);
}

describe.for(Object.entries(exceptions))("the protocol's own conformance suite, %s", ([version, excused]) => {
  it("passes but for what isn't offered", { timeout: 120_000 }, async ({ skip }) => {
    if (program === undefined) return skip("host: @modelcontextprotocol/conformance isn't installed");
    const checks = await checksOf(program, version);
    expect(contradictionsOf(checks, excused)).toEqual([]);
    expect(checks.size).toBeGreaterThan(20);
  });
});
