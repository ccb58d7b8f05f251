import type { McpServer } from "@ambit/core/contract";
import type {
  Publication,
  PublishedCall,
  PublishedOutcome,
  PublishedTool,
  ToolSource,
} from "@ambit/core/plugin";

/** Every HTTP MCP server of a request, by default with one tool `search` that says it only reads. */
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

  tools: readonly PublishedTool[] = [{ name: "search", inputSchema: { type: "object" }, readOnly: true }];

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
      tools: this.tools,
      call: (call) => {
        this.received.push(call);
        return this.answer(call);
      },
    };
  }
}
