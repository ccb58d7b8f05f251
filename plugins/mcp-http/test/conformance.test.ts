import { execFile } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Published, publish } from "./publications.js";

/** Installed separately: it needs overrides. */
const require = createRequire(new URL("../conformance/package.json", import.meta.url));

/** Where an installed package's own manifest is; undefined when it isn't installed. */
function folderOf(name: string): string | undefined {
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

const suite = folderOf("@modelcontextprotocol/conformance");

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

describe("the protocol's own conformance suite", () => {
  const cases = Object.entries(scenarios).flatMap(([version, names]) =>
    names.map((name) => [version, name] as const),
  );
  it.for(cases)("%s %s", { timeout: 60_000 }, async ([version, scenario], { skip }) => {
    if (suite === undefined) return skip("@modelcontextprotocol/conformance is not installed");
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
    const given = ["server", "--url", url, "--spec-version", version, "--scenario", scenario];
    const stdout = await outputOf(process.execPath, [join(suite, "dist", "index.js"), ...given]);
    expect(stdout).toMatch(/Passed: ([1-9]\d*)\/\1, 0 failed, 0 warnings/);
  });
});

/** Its output, also on failure: it names the failed checks. */
function outputOf(program: string, given: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(program, given, { env: {} }, (_error, stdout) => resolve(stdout));
  });
}
