import { type JsonObject, type McpServer, ownServerName, type ToolSpec } from "@ambit/core/contract";
import type { PermissionQuestion, ToolClass } from "@ambit/core/plugin";

/**
 * A tool of the request, of the agent, or of the MCP server with that name. `runner`: not a tool, but a question of the
 * runner.
 */
export type CallOrigin = "request" | "agent" | "runner" | { readonly server: string };

/** What a call is about: everything that a permission depends on and that its user sees. */
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
  /** What its user reads of it besides name and arguments. */
  readonly details?: JsonObject | undefined;
  /** The files that it would change and those that it names, as its agent says. */
  readonly files?: Pick<PermissionQuestion, "changes" | "locations"> | undefined;
  /** What the model reads when it is denied. Default: that a policy denies it. */
  readonly denial?: string | undefined;
  /** Fulfilled by the user: answering it *is* the user's consent. */
  readonly byCaller?: boolean | undefined;
}

/** The call that an agent asks about. Pure. */
export function subjectOf(
  question: PermissionQuestion,
  tools: ReadonlyMap<string, ToolSpec>,
  servers: ReadonlyMap<string, McpServer>,
): CallSubject {
  const { toolCallId: id, toolName: name, input, readOnly, server: serverName, toolClass } = question;
  const { changes, locations } = question;
  const server = serverName === undefined ? undefined : servers.get(serverName);
  // A tool of the agent may have the name of one of the request, but is a different tool.
  const tool = serverName === ownServerName ? tools.get(name) : undefined;
  const origin = tool !== undefined ? "request" : serverName === undefined ? "agent" : { server: serverName };
  const files = {
    ...(changes === undefined ? {} : { changes }),
    ...(locations === undefined ? {} : { locations }),
  };
  return { id, name, origin, input, tool, server, saysReadOnly: readOnly, toolClass, files };
}
