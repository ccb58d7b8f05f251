import type { IncomingMessage, ServerResponse } from "node:http";
import { sendJson } from "./json.js";
import { STATUS_CODES } from "./node-http.js";

/** The service of Daytona that responds: the SDK chooses its error class by this and the code. */
export type ErrorSource = "DAYTONA_API" | "DAYTONA_DAEMON" | "DAYTONA_PROXY";

const codes: Readonly<Record<number, string>> = {
  400: "BAD_REQUEST",
  401: "UNAUTHORIZED",
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  408: "REQUEST_TIMEOUT",
  409: "CONFLICT",
  410: "GONE",
  422: "UNPROCESSABLE_ENTITY",
  500: "INTERNAL_SERVER_ERROR",
};

/** A response with an error status. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message = STATUS_CODES[status] ?? "Unknown Error",
    readonly code = codes[status],
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

export const notFound = (message: string) => new ApiError(404, message);
export const badRequest = (message: string) => new ApiError(400, message);

/** The body of an error, as the API and the toolbox both send it. */
export function errorBody(error: ApiError, method: string, path: string, source: ErrorSource) {
  const { status, message, code } = error;
  return {
    statusCode: status,
    message,
    ...(code === undefined ? {} : { code }),
    timestamp: new Date().toISOString(),
    path,
    method,
    source,
  };
}

/** Responds with an error. One that isn't an {@link ApiError} is a bug: 500 with its message. */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  thrown: unknown,
  source: ErrorSource,
): void {
  const error = thrown instanceof ApiError ? thrown : new ApiError(500, String(thrown));
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const path = new URL(request.url ?? "/", "http://loopback").pathname;
  for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
  sendJson(response, error.status, errorBody(error, request.method ?? "GET", path, source));
}
