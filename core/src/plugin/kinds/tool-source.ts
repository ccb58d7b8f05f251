import type { Boundary } from "../../boundary/index.js";
import type { Issue, McpServer } from "../../contract/index.js";
import type { Actor } from "../actor.js";
import type { Log } from "../log.js";
import type { Scope } from "../scope.js";
import type { Publication } from "./delivery.js";
import type { Sandbox } from "./sandbox.js";

export interface ToolSourceScope extends Scope {
  /** What the run may touch: a source on the runner keeps to it by itself. */
  readonly boundary: Boundary;
  readonly sandbox: Sandbox;
  readonly log: Log;
}

/** Brings the tools of a user's MCP server into the run. */
export interface ToolSource extends Actor<McpServer> {
  /** The connections it speaks. */
  readonly connection: McpServer["connection"]["type"];
  /** What keeps this server from being used at all, by path within it (`connection.url`). Pure. */
  issues(server: McpServer): readonly Issue[];
  connect(server: McpServer, scope: ToolSourceScope): Promise<Publication>;
}
