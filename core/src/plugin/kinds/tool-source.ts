import type { Boundary } from "../../boundary.js";
import type { Issue, McpServer } from "../../contract/index.js";
import type { Actor } from "../actor.js";
import type { Log } from "../log.js";
import type { Scope } from "../scope.js";
import type { Publication } from "./delivery.js";
import type { Sandbox } from "./sandbox.js";

export interface ToolSourceScope extends Scope {
  /** What the run may touch: a source on the runner must enforce it itself. */
  readonly boundary: Boundary;
  readonly sandbox: Sandbox;
  readonly log: Log;
}

/** Brings the tools of a user's MCP server into the run. */
export interface ToolSource extends Actor<McpServer> {
  /** The type of connection that it handles. */
  readonly connection: McpServer["connection"]["type"];
  /** Why this server can't be used, by path within it (`connection.url`). Pure. */
  issues(server: McpServer): readonly Issue[];
  connect(server: McpServer, scope: ToolSourceScope): Promise<Publication>;
}
