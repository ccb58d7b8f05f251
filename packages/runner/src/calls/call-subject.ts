import { type McpServer, ownServerName, type ToolSpec } from "@ambit/core/contract";
import type { PermissionQuestion, ToolClass } from "@ambit/core/plugin";

/** The request's own tool, the agent's own, or one of the MCP server of that name. `runner`: no tool, but a question of ours. */
export type CallOrigin = "request" | "agent" | "runner" | { readonly server: string };

/** What a call is about: all that a permission depends on, and that its user is shown. */
export interface CallSubject {
  /** `AgentCall.id`. */
  readonly id: string;
  readonly name: string;
  readonly origin: CallOrigin;
  /** Undefined when the agent doesn't report it. */
  readonly input: unknown;
  /** The tool of the request, if it is one; else the agent's own, or its server's. */
  readonly tool?: ToolSpec | undefined;
  readonly server?: McpServer | undefined;
  /** What the agent reports about its own tool. For any other tool, only the request counts. */
  readonly saysReadOnly?: boolean | undefined;
  /** What a tool of the agent's own does. */
  readonly toolClass?: ToolClass | undefined;
  /** Fulfilled by the user: answering it *is* the user's consent. */
  readonly byCaller?: boolean | undefined;
}

/** The call that an agent asks about. Pure. */
export function subjectOf(
  { toolCallId: id, toolName: name, input, readOnly, server: serverName, toolClass }: PermissionQuestion,
  tools: ReadonlyMap<string, ToolSpec>,
  servers: ReadonlyMap<string, McpServer>,
): CallSubject {
  const server = serverName === undefined ? undefined : servers.get(serverName);
  // A tool of the agent's own may have the name of one of the request's: it isn't that one.
  const tool = serverName === ownServerName ? tools.get(name) : undefined;
  const origin = tool !== undefined ? "request" : serverName === undefined ? "agent" : { server: serverName };
  return { id, name, origin, input, tool, server, saysReadOnly: readOnly, toolClass };
}
