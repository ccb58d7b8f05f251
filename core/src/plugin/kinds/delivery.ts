/** The tools that are published to an agent: tool sources bring those of MCP servers, and a delivery publishes them all. */

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
  /** The reasons why this server can't be used, by path within it (`connection.url`). Pure. */
  issues(server: McpServer): readonly Issue[];
  connect(server: McpServer, scope: ToolSourceScope): Promise<Publication>;
}

/** The part of a tool that the agent sees: never `callRef`, `code`, `env` or a credential. */
export type PublishedTool = Pick<ToolSpec, "name" | "description" | "inputSchema" | "readOnly">;

/** A call of a published tool. Pass its trace context on with the requests that the call makes. */
export interface PublishedCall extends TraceContext {
  readonly name: string;
  readonly arguments: JsonObject;
  /** The agent's own id of the call, where its protocol carries one. */
  readonly id?: string;
  /** Aborts when the agent abandons the call. */
  readonly signal: AbortSignal;
}

/** The outcome of a call, as text for the model. */
export interface PublishedOutcome {
  readonly output: string;
  readonly isError: boolean;
  /**
   * Set if the turn has ended and the agent no longer waits for a response. If the protocol allows it, the call then ends
   * without one, since some agents treat a late response as a fault.
   */
  readonly isLate?: true;
}

export interface Publication {
  /** The name of the server that the agent sees: `ambit` for the request's own tools. */
  readonly name: string;
  readonly tools: readonly PublishedTool[];
  /** From now on, calls `changed` with every list that replaces `tools`. Absent: the tools don't change. */
  watch?(changed: (tools: readonly PublishedTool[]) => void): void;
  /** Decides, executes and answers; never throws. */
  call(call: PublishedCall): Promise<PublishedOutcome>;
}

export interface DeliveryScope extends Scope {
  readonly sandbox: Sandbox;
  readonly log: Log;
}

/** How the agent reaches a publication, in the form that its session configuration needs. */
export interface PublishedServer {
  readonly name: string;
  /** The address inside the sandbox. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the agent has requested the list of tools: agents don't report a server that they couldn't reach. */
  listed(): boolean;
}

export interface ToolDelivery extends Actor {
  publish(publication: Publication, scope: DeliveryScope): Promise<PublishedServer>;
}
