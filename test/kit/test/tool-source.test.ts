import type { McpServer, Publication, ToolSource, ToolSourceScope } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { toolSourceChecks } from "../src/tool-source/checks.js";
import { servedTools } from "../src/tool-source/mcp-program.js";
import { ToolSourceStage } from "../src/tool-source/tool-source-stage.js";

type Call = Parameters<Publication["call"]>[0];

/** A source without a server: it behaves like the kit's server, except for what a test changes. */
function sourceOf(
  change: (publication: Publication, server: McpServer) => Publication = (one) => one,
): ToolSource {
  return {
    name: "canned",
    connection: "stdio",
    site: "sandbox",
    claims: [],
    touches: () => ["process"],
    gaps: () => [],
    issues: () => [],
    probe: async () => [],
    connect: async (server: McpServer, _scope: ToolSourceScope) => change(publicationOf(server), server),
  };
}

function publicationOf({ name, policy }: McpServer): Publication {
  const included = (tool: string) => policy?.tools?.names?.includes(tool) ?? true;
  return {
    name,
    tools: servedTools
      .filter((tool) => included(tool.name))
      .map((tool) => ({ ...tool, readOnly: tool.name === "look" })),
    call: async ({ name: called, arguments: given }: Call) => {
      if (!included(called)) return { output: "there is no such tool", isError: true };
      if (called === "fail") return { output: "it failed", isError: true };
      return { output: JSON.stringify(given), isError: false };
    },
  };
}

async function outcomeOf(title: string, source: ToolSource): Promise<"passes" | "is caught"> {
  const found = toolSourceChecks.find((one) => one.title === title);
  if (found === undefined) throw new Error(`there is no check '${title}'`);
  const stage = await ToolSourceStage.open(source, found.script);
  try {
    return await found.check(stage).then(
      () => "passes",
      () => "is caught",
    );
  } finally {
    await stage.close();
  }
}

const asPublished = "publishes the tools with their names, descriptions and schemas unchanged";
const asCalled = "passes on a call's arguments and its result unchanged";
const asIncluded = "publishes and calls only the tools that the request includes";
const asFailed = "marks a failed call as failed";
const asSecret = "publishes no credential";

describe("a careless tool source", () => {
  it.each([asPublished, asCalled, asIncluded, asFailed, asSecret])(
    "the control passes: %s",
    async (title) => {
      expect(await outcomeOf(title, sourceOf())).toBe("passes");
    },
  );

  it.each<[what: string, title: string, source: ToolSource]>([
    [
      "that renames tools",
      asPublished,
      sourceOf((one) => ({ ...one, tools: one.tools.map((tool) => ({ ...tool, name: `x_${tool.name}` })) })),
    ],
    [
      "that drops arguments",
      asCalled,
      sourceOf((one) => ({ ...one, call: (call) => one.call({ ...call, arguments: {} }) })),
    ],
    [
      "that ignores the tools that a request includes",
      asIncluded,
      sourceOf((_one, { policy: _ignored, ...server }) => publicationOf(server)),
    ],
    [
      "that reports a failure as a success",
      asFailed,
      sourceOf((one) => ({ ...one, call: async (call) => ({ ...(await one.call(call)), isError: false }) })),
    ],
    [
      "that publishes a credential",
      asSecret,
      sourceOf((one, server) => ({ ...one, name: JSON.stringify(server.connection) })),
    ],
    ["that publishes a server that returns an error", "fails for a server that returns an error", sourceOf()],
    ["that publishes a server that ends", "fails for a server that ends at once", sourceOf()],
  ])("%s is caught", async (_what, title, source) => {
    expect(await outcomeOf(title, source)).toBe("is caught");
  });
});
