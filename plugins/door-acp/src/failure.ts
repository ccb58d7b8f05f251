import { RequestError } from "@agentclientprotocol/sdk/unstable";
import { AmbitError } from "@ambit/client";
import { messageOf } from "@ambit/core/plugin";

const code = { authRequired: -32_000, invalidParams: -32_602, internal: -32_603 } as const;

/** The field of a request whose absence means that the agent has no way to its model. */
const loginPath = "modelConnection.credentials";

/** What a refusal needs to be understood in an editor. */
export interface RefusalContext {
  /** What to do where the agent lacks its model's key. */
  readonly login?: string | undefined;
  /** Names of the request's MCP servers, in order. */
  readonly servers?: readonly string[];
}

/**
 * A refusal or a failed run as the error of the editor's request: its text has every gap and issue with its fix, a line each.
 */
export function requestErrorOf(error: unknown, { login, servers = [] }: RefusalContext = {}): RequestError {
  if (error instanceof RequestError) return error;
  if (!(error instanceof AmbitError)) return new RequestError(code.internal, messageOf(error));
  const { gaps, issues, retryable } = error;
  const lines = [
    ...gaps.map(({ actor, subject, capability, reason, fix }) => {
      const who = subject === undefined ? actor : `${actor} (${subject})`;
      return `- ${who} · ${capability}: ${reason}: ${fix}`;
    }),
    ...issues.map(({ path, message }) =>
      path === "" ? `- ${message}` : `- ${named(path, servers)}: ${message}`,
    ),
  ];
  const needsLogin = login !== undefined && issues.some(({ path }) => path === loginPath);
  const isRefusal = lines.length > 0;
  const text = isRefusal
    ? [`Ambit refuses to start the agent:`, ...lines, ...(needsLogin ? [login] : [])].join("\n")
    : error.message;
  const errorCode = needsLogin ? code.authRequired : isRefusal ? code.invalidParams : code.internal;
  return new RequestError(errorCode, text, { code: error.code, retryable, gaps, issues });
}

/** A path in which a server's number is its name. */
function named(path: string, servers: readonly string[]): string {
  return path.replace(/^mcpServers\[(\d+)\]/, (whole, index: string) => {
    const name = servers[Number(index)];
    return name === undefined ? whole : `mcpServers['${name}']`;
  });
}
