import { realpathSync } from "node:fs";
import { delimiter, dirname } from "node:path";
import type { Domain, McpServer, Publication, ToolSource, ToolSourceScope } from "@ambit/core/plugin";
import type { McpClientConfig } from "./config.js";

/**
 * MCP servers over stdio, each a process of its own in the sandbox: it inherits every guarantee, and neither the
 * agent nor a tool sees its environment where the sandbox promises that.
 */
export class StdioToolSource implements ToolSource {
  readonly name = "mcp-stdio-client";
  readonly connection = "stdio";
  readonly site = "sandbox";
  readonly claims = [];

  constructor(readonly config: McpClientConfig) {}

  touches(): readonly Domain[] {
    return ["network", "filesystem", "process", "environment", "resources"];
  }

  covers(): [] {
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
    if (connection.type !== "stdio") throw new Error(`'${server.name}' is no stdio server.`);
    // The MCP SDK takes tens of milliseconds to load: only runs that bring such a server wait for it.
    const { publicationOf } = await import("./publication.js");
    const { SandboxStdioTransport } = await import("./stdio-transport.js");
    const path = [this.config.path, dirname(realpathSync(process.execPath))].join(delimiter);
    const spawned = await scope.sandbox.spawn({
      argv: [connection.command, ...(connection.args ?? [])],
      env: { PATH: path, LANG: "C.UTF-8", ...connection.env },
      role: "tool",
      signal: scope.signal,
    });
    scope.defer(() => spawned.kill());
    drain(spawned.stderr, (text) =>
      scope.log.debug({ server: server.name, text }, "a stdio MCP server wrote to stderr"),
    );
    return publicationOf(server, new SandboxStdioTransport(spawned, this.config.largestMessage), scope);
  }
}

/** Unread, a full pipe would stop the server. */
function drain(stream: ReadableStream<Uint8Array>, said: (text: string) => void): void {
  const decoder = new TextDecoder();
  const reading = stream.pipeTo(
    new WritableStream({ write: (chunk) => said(decoder.decode(chunk, { stream: true }).slice(0, 2_000)) }),
  );
  // The server was killed: nothing more is said.
  reading.catch(() => {});
}
