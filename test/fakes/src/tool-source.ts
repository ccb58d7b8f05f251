import type { McpServer } from "@ambit/core/contract";
import type { Publication, PublishedCall, PublishedOutcome, ToolSource } from "@ambit/core/plugin";

/** Every HTTP MCP server of a request, with one tool `search` that says it only reads. */
export class FakeToolSource implements ToolSource {
  readonly name = "fake-source";
  readonly site = "runner";
  readonly claims = [];
  readonly connection = "http";
  readonly received: PublishedCall[] = [];
  answer: (call: PublishedCall) => Promise<PublishedOutcome> = async ({ name }) => ({
    output: `${name} found it`,
    isError: false,
  });

  touches(): ["network"] {
    return ["network"];
  }

  gaps(): [] {
    return [];
  }

  issues(): [] {
    return [];
  }

  async probe(): Promise<[]> {
    return [];
  }

  async connect(server: McpServer): Promise<Publication> {
    return {
      name: server.name,
      tools: [{ name: "search", inputSchema: { type: "object" }, readOnly: true }],
      call: (call) => {
        this.received.push(call);
        return this.answer(call);
      },
    };
  }
}
