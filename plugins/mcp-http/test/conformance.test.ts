import { once } from "node:events";
import http from "node:http";
import { type ConformanceCheck, conformanceProgram, runConformance } from "@ambit/fakes/mcp-conformance";
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

/**
 * Excluded: checks that need prompts, resources, sampling, elicitation, images or audio, which no publication has, and
 * resumable streams, which a stateless endpoint doesn't have.
 */
const common = ["tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-with-progress"];
const scenarios: Readonly<Record<string, readonly string[]>> = {
  "2025-06-18": ["server-initialize", "ping", ...common],
  "2025-11-25": ["server-initialize", "ping", ...common, "json-schema-2020-12", "dns-rebinding-protection"],
  "2026-07-28": [
    ...common,
    "json-schema-2020-12",
    "dns-rebinding-protection",
    "http-header-validation",
    "server-sse-multiple-streams",
  ],
};

/** The checks of each scenario, excluded ones as well. */
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

describe.for(Object.entries(scenarios))("the protocol's own conformance suite, %s", ([version, names]) => {
  let checks: ReturnType<typeof checksOf> | undefined;

  it.for(names)("%s", { timeout: 60_000 }, async (scenario, { skip }) => {
    if (program === undefined) return skip("host: @modelcontextprotocol/conformance isn't installed");
    checks ??= checksOf(program, version);
    const judged = (await checks).get(scenario) ?? [];
    expect(judged.filter(({ status }) => status !== "SUCCESS")).toEqual([]);
    expect(judged.length).toBeGreaterThan(0);
  });
});
