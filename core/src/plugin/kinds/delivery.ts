/** The tools that are published to an agent: where those of MCP servers come from, and how all of them reach it. */

import type { Boundary } from "../../boundary.js";
import type { Issue, JsonObject, McpServer, ToolSpec } from "../../contract/index.js";
import type { Actor } from "../actor.js";
import type { Log, Scope, TraceContext } from "../scope.js";
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

/** The part of a tool that the agent sees: never `callRef`, `code`, `env` or a credential. */
export type PublishedTool = Pick<ToolSpec, "name" | "description" | "inputSchema" | "readOnly">;

/** Its trace context is to be passed on with requests that the call makes. */
export interface PublishedCall extends TraceContext {
  readonly name: string;
  readonly arguments: JsonObject;
  /** The agent's own id of the call, where its protocol carries one. */
  readonly id?: string;
  /** Aborts when the agent abandons the call. */
  readonly signal: AbortSignal;
}

/** Text for the model. */
export interface PublishedOutcome {
  readonly output: string;
  readonly isError: boolean;
  /**
   * The turn is over, and the agent no longer waits for an answer: if the protocol allows it, the call ends without one,
   * since some agents take a late one for a fault.
   */
  readonly isLate?: true;
}

export interface Publication {
  /** The server's name as the agent sees it: `ambit` for the request's own tools. */
  readonly name: string;
  readonly tools: readonly PublishedTool[];
  /** From now on, calls `changed` with every list that replaces `tools`. Absent: they stay as they are. */
  watch?(changed: (tools: readonly PublishedTool[]) => void): void;
  /** Decides, executes and answers; never throws. */
  call(call: PublishedCall): Promise<PublishedOutcome>;
}

export interface DeliveryScope extends Scope {
  readonly sandbox: Sandbox;
  readonly log: Log;
}

/** How the agent reaches a publication, as its session configuration wants it. */
export interface PublishedServer {
  readonly name: string;
  /** As seen inside the sandbox. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the agent has asked for the list of tools: agents hide a server they couldn't reach. */
  listed(): boolean;
}

export interface ToolDelivery extends Actor {
  publish(publication: Publication, scope: DeliveryScope): Promise<PublishedServer>;
}
