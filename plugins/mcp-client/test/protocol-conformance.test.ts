import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { type JsonObject, messageOf, type PublishedTool } from "@ambit/core/plugin";
import { listening } from "@ambit/fakes/listening";
import { type ConformanceCheck, conformanceProgram, runConformance } from "@ambit/fakes/mcp-conformance";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { configSchema } from "../src/config.js";
import { HttpToolSource } from "../src/http-source.js";
import { httpServer, TestScope } from "./support/runs.js";
import { type Version, versions } from "./support/sdk-servers.js";

const program = conformanceProgram();
const forwarder = fileURLToPath(new URL("support/forward.mjs", import.meta.url));

/** Scenarios that pass. */
const passed: Readonly<Record<Version, readonly string[]>> = {
  "2025-11-25": ["initialize", "tools_call", "sse-retry", "json-schema-2020-12-preservation"],
  "2026-07-28": [
    "tools_call",
    "request-metadata",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
  ],
};

/** Scenarios of what isn't offered, which must not pass. */
const refused: readonly (readonly [scenario: RegExp, reason: string])[] = [
  [/^auth\//, "OAuth isn't offered: credentials come with the request"],
  [/^elicitation-/, "elicitation isn't offered"],
  [/^sep-2322-client-request-state$/, "elicitation, which it asks for, isn't offered"],
  [/^sep-2640-/, "skills aren't offered: they aren't read from MCP servers"],
];

const startedSchema = z.object({
  url: z.string(),
  context: z.object({
    toolCalls: z.array(z.object({ name: z.string(), arguments: z.record(z.string(), z.json()) })).default([]),
  }),
});

/** Connects, and calls each tool that the server lists. */
async function drive(started: unknown): Promise<void> {
  const { url, context } = startedSchema.parse(started);
  const scope = new TestScope();
  try {
    const config = configSchema.parse({
      allowedRanges: ["127.0.0.0/8", "::1/128"],
      loopbackWithoutTls: true,
    });
    const { tools, call } = await new HttpToolSource(config).connect(httpServer(url), scope);
    for (const tool of tools) {
      const planned = context.toolCalls.find(({ name }) => name === tool.name)?.arguments;
      const { signal } = scope;
      await call({ name: tool.name, arguments: planned ?? argumentsFor(tool, tools), signal });
    }
  } finally {
    await scope.close();
  }
}

function argumentsFor({ name }: PublishedTool, tools: readonly PublishedTool[]): JsonObject {
  if (name === "add_numbers") return { a: 5, b: 3 };
  if (name !== "json_schema_echo") return {};
  return { schema: tools.find((tool) => tool.name === "json_schema_2020_12_tool")?.inputSchema ?? {} };
}

async function checksOf(
  suite: string,
  version: Version,
): Promise<ReadonlyMap<string, readonly ConformanceCheck[]>> {
  let close = () => {};
  const control = createServer((request, response) => {
    json(request)
      .then(drive)
      .then(
        () => response.end(),
        (error: unknown) => response.writeHead(500).end(messageOf(error)),
      );
  });
  const port = await listening(control, (end) => {
    close = end;
  });
  try {
    const command = `${process.execPath} ${forwarder} http://127.0.0.1:${port}/`;
    const argv = ["client", "--command", command, "--suite", "all", "--spec-version", version];
    return await runConformance(suite, argv);
  } finally {
    close();
  }
}

describe.for(versions)("the client's half of the protocol's own conformance suite, %s", (version) => {
  it("passes what is offered, and nothing else", { timeout: 120_000 }, async ({ skip }) => {
    if (program === undefined) return skip("host: @modelcontextprotocol/conformance isn't installed");
    const checks = await checksOf(program, version);
    const outcomes = [...checks].map(([scenario, all]) => {
      const failures = all.filter(({ status }) => status === "FAILURE" || status === "WARNING");
      const isPassed = failures.length === 0 && all.some(({ status }) => status === "SUCCESS");
      const [, reason] = refused.find(([pattern]) => pattern.test(scenario)) ?? [];
      return { scenario, isPassed, reason, failures };
    });
    expect(
      outcomes
        .filter(({ isPassed }) => isPassed)
        .map(({ scenario }) => scenario)
        .toSorted(),
    ).toEqual(passed[version].toSorted());
    expect(outcomes.filter(({ isPassed, reason }) => !isPassed && reason === undefined)).toEqual([]);
  });
});
