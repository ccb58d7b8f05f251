import { type AgentEventOf, isAmbitError, messageOf } from "@ambit/core";

type Failed = AgentEventOf<"mcp_server_failed">;

/** Levels of causes that are looked at. */
const maxCauses = 8;

/** The event for an MCP server that its tool source couldn't connect to. Pure. */
export function mcpServerFailed(serverName: string, error: unknown): Failed {
  const message = messageOf(error);
  // An error of the catalogue has the status of our own response.
  const causes = causesOf(error).filter((cause) => !isAmbitError(cause));
  const status = causes.map(statusOf).find((found) => found !== undefined);
  return {
    type: "mcp_server_failed",
    serverName,
    reasonCode: reasonOf(causes, status),
    message,
    status,
  };
}

function reasonOf(causes: readonly unknown[], status: number | undefined): Failed["reasonCode"] {
  if (status === 401 || status === 403) return "handshake_rejected";
  if (status !== undefined) return "handshake_http_error";
  return causes.some(isOfConnection) ? "handshake_unreachable" : "handshake_invalid_response";
}

/** Codes of Node and undici: `ECONNREFUSED`, `UND_ERR_CONNECT_TIMEOUT`. */
function isOfConnection(error: unknown): boolean {
  const code = fieldOf(error, "code");
  return (
    typeof code === "string" &&
    /^(E[A-Z]+|UND_ERR_|ERR_TLS_|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code)
  );
}

function statusOf(error: unknown): number | undefined {
  for (const name of ["code", "status"]) {
    const value = fieldOf(error, name);
    if (typeof value === "number" && value >= 400 && value <= 599) return value;
  }
  return undefined;
}

function fieldOf(error: unknown, name: string): unknown {
  return typeof error === "object" && error !== null
    ? Object.entries(error).find(([key]) => key === name)?.[1]
    : undefined;
}

/** The error and what caused it, and their errors where there are several. */
function causesOf(error: unknown): readonly unknown[] {
  const found: unknown[] = [];
  let current = error;
  while (current instanceof Error && found.length < maxCauses) {
    found.push(current);
    if (current instanceof AggregateError) found.push(...current.errors.slice(0, maxCauses));
    current = current.cause;
  }
  return found;
}
