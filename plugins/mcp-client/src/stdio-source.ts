import { realpathSync } from "node:fs";
import { delimiter, dirname } from "node:path";
import {
  type Domain,
  type Exit,
  inject,
  type McpServer,
  type Publication,
  pluginTokens,
  type ToolSource,
  type ToolSourceScope,
} from "@ambit/core/plugin";
import type { McpClientConfig } from "./config.js";
import type { Channel } from "./connections.js";
import { LastWords, withoutValues } from "./last-words.js";
import { MessageGuard } from "./message-guard.js";

/**
 * MCP servers over stdio, each a separate process in the sandbox: it inherits every guarantee, and neither the agent
 * nor a tool sees its environment if the sandbox guarantees that.
 */
export class StdioToolSource implements ToolSource {
  readonly name = "mcp-stdio-client";
  readonly connection = "stdio";
  readonly site = "sandbox";
  readonly claims = [];

  constructor(@inject(pluginTokens.config) readonly config: McpClientConfig) {}

  touches(): readonly Domain[] {
    return ["network", "filesystem", "process", "environment", "resources"];
  }

  gaps(): [] {
    return [];
  }

  issues(): [] {
    return [];
  }

  probe(): Promise<[]> {
    return Promise.resolve([]);
  }

  async connect(server: McpServer, scope: ToolSourceScope): Promise<Publication> {
    const { connection } = server;
    if (connection.type !== "stdio") throw new Error(`'${server.name}' is not a stdio server.`);
    // The MCP SDK takes tens of milliseconds to load, so only runs with such a server load it.
    const { publicationOf } = await import("./publication.js");
    const { SandboxStdioTransport } = await import("./transport/stdio.js");
    const { image } = scope.sandbox;
    const onRunner = [this.config.path, dirname(realpathSync(process.execPath))].join(delimiter);
    const path = image?.searchPath ?? onRunner;
    const openChannel = async (): Promise<Channel> => {
      const spawned = await scope.sandbox.spawn({
        argv: [connection.command, ...(connection.args ?? [])],
        env: { PATH: path, LANG: "C.UTF-8", ...connection.env },
        role: "tool",
        signal: scope.signal,
      });
      const words = new LastWords(spawned.stderr, (text) =>
        scope.log.debug({ server: server.name, text }, "a stdio MCP server wrote to stderr"),
      );
      const guard = new MessageGuard(this.config);
      const transport = new SandboxStdioTransport(spawned, guard);
      return {
        transport,
        guard,
        hasEnded: () => transport.hasEnded,
        ending: async () => {
          const hide = (text: string) => withoutValues(text, connection.env ?? {});
          const how = `${howEnded(transport.exit)}${hide(guard.strayText)}`;
          return { how, output: hide(await words.all()) };
        },
      };
    };
    return await publicationOf(server, openChannel, scope);
  }
}

function howEnded(exit: Exit | undefined): string {
  if (exit === undefined) return "";
  return exit.signal === null ? ` (exit code ${exit.code})` : ` (${exit.signal})`;
}
