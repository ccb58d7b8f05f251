import type { ModelFailure } from "@ambit/core/plugin";
import { AddressRefused } from "@ambit/egress";
import { ProxyFailed } from "@ambit/egress/client";

const maxMessageLength = 300;

/** Whether the same request may succeed later. Pure. */
export function isRetryable(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/** A response with an error status. Pure. */
export function failedResponse(status: number, words: string | undefined): ModelFailure {
  const said = words === undefined || words === "" ? "" : `: ${shortLine(words)}`;
  return { status, retryable: isRetryable(status), message: `The model answered with ${status}${said}` };
}

/** A credential can't be obtained. The cause contains no secret. */
export class NotAuthorized extends Error {
  override readonly name = "NotAuthorized";
}

/** No response, or an incomplete one. Pure. */
export function failedConnection(error: unknown, host: string, hasBegun: boolean): ModelFailure {
  if (error instanceof NotAuthorized) {
    const why = error.cause instanceof Error ? `: ${shortLine(error.cause.message)}` : "";
    return { retryable: false, message: `The model's credential couldn't be used${why}` };
  }
  const cause = causeOf(error);
  if (cause instanceof AddressRefused) {
    return { retryable: false, message: `Connecting to the model's host is not allowed: ${cause.message}` };
  }
  if (cause instanceof ProxyFailed)
    return {
      retryable: cause.status !== 407,
      message: `The model at ${host} can't be reached: ${cause.message}`,
    };
  const code = codeOf(cause) ?? codeOf(error) ?? "no reason given";
  const what = hasBegun ? "The model's response was truncated" : `The model at ${host} can't be reached`;
  return { retryable: true, message: `${what} (${code})` };
}

/**
 * An answer that ended properly, but before it was finished. Pure.
 * @param missing what would have finished it, where some servers never say that
 */
export function unfinishedAnswer(words: string | undefined, missing: string | undefined): ModelFailure {
  const why =
    missing === undefined
      ? ""
      : ` (it has no ${missing}; if its server never says one, add the server's host to withoutFinishReason in the configuration of model-route)`;
  const said = words === undefined || words === "" ? why : `: ${shortLine(words)}`;
  const message = `The model's answer ended before it was finished${said}`;
  return { retryable: true, isPartial: true, message };
}

export function shortLine(text: string): string {
  const line = text.replace(/[\p{Cc}\s]+/gu, " ").trim();
  return line.length > maxMessageLength ? `${line.slice(0, maxMessageLength)}…` : line;
}

function causeOf(error: unknown): unknown {
  if (error instanceof ProxyFailed || !(error instanceof Error)) return error;
  return error.cause ?? error;
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** A response of the route itself, in a format that clients of every provider read. */
export function ownAnswer(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const type = status >= 500 ? "api_error" : status === 429 ? "rate_limit_error" : "invalid_request_error";
  const body = { type: "error", error: { type, code: status, message: `Ambit's model route: ${message}` } };
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json", ...headers },
  });
}
