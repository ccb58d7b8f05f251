import { realpathSync } from "node:fs";
import { delimiter, dirname } from "node:path";
import {
  type Domain,
  HarnessFailed,
  inject,
  type McpServer,
  type Publication,
  pluginTokens,
  type ToolSource,
  type ToolSourceScope,
} from "@ambit/core/plugin";
import type { McpClientConfig } from "./config.js";
import { LastWords } from "./last-words.js";
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
    const spawned = await scope.sandbox.spawn({
      argv: [connection.command, ...(connection.args ?? [])],
      env: { PATH: path, LANG: "C.UTF-8", ...connection.env },
      role: "tool",
      signal: scope.signal,
    });
    scope.defer(() => spawned.kill());
    const words = new LastWords(spawned.stderr, (text) =>
      scope.log.debug({ server: server.name, text }, "a stdio MCP server wrote to stderr"),
    );
    try {
      const guard = new MessageGuard(this.config);
      return await publicationOf(server, new SandboxStdioTransport(spawned, guard), guard, scope);
    } catch (error) {
      if (!(error instanceof HarnessFailed)) throw error;
      await spawned.kill();
      const said = await words.all();
      if (said === "") throw error;
      throw new HarnessFailed(`${error.message} It wrote:\n${said}`, { cause: error });
    }
  }
}
