import type { Door, DoorCall, DoorRoute, StdioCall } from "@ambit/core/plugin";
import type { DoorConfig } from "./config.js";
import type { Endpoint } from "./endpoint.js";

const path = "/mcp";
const version = "0.1.0";

/** Ambit's agents as an MCP server, over HTTP (`/mcp`) and on standard input and output (`ambit door mcp`). */
export class McpDoor implements Door {
  readonly name = "mcp";
  readonly routes: readonly DoorRoute[];
  readonly #config: DoorConfig;
  #endpoint: Promise<Endpoint> | undefined;

  constructor(config: DoorConfig) {
    this.#config = config;
    this.routes = [
      {
        method: "POST",
        path,
        summary: "MCP: a message of a client",
        handle: async (call) => await (await this.#open()).post(call),
      },
      {
        method: "GET",
        path,
        summary: "MCP: what a session's client listens to",
        handle: (call) => this.#session(call),
      },
      { method: "DELETE", path, summary: "MCP: the end of a session", handle: (call) => this.#session(call) },
    ];
  }

  async stdio(call: StdioCall): Promise<void> {
    const { serveClient } = await import("./stdio.js");
    await serveClient(call, this.#config, version);
  }

  async #session(call: DoorCall): Promise<Response> {
    return await (await this.#open()).session(call);
  }

  /** The MCP SDK takes tens of milliseconds to load; a server's start doesn't load it. */
  #open(): Promise<Endpoint> {
    this.#endpoint ??= import("./endpoint.js").then(
      ({ Endpoint: Opened }) => new Opened(this.#config, version),
    );
    return this.#endpoint;
  }
}
