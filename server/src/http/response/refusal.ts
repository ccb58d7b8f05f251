import type { ServerResponse } from "node:http";
import { AtCapacity, type FailedResult, type Failure, isAmbitError } from "@ambit/core";
import { failedBy, failedResult, invalid, isServerFault, MalformedJson } from "../../results.js";
import { mediaTypes, onlyRecord, type ResponseFormat } from "./records.js";
import { send } from "./send.js";

/** A refusal of HTTP itself, for which the catalogue of errors has no class. */
export class HttpRefusal extends Error {
  override readonly name = "HttpRefusal";

  constructor(
    readonly status: 403 | 405 | 408 | 413,
    message: string,
    readonly code: Failure["code"],
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** A response before anything was streamed. */
export interface Refusal {
  readonly status: number;
  readonly body: FailedResult;
  readonly headers: Readonly<Record<string, string>>;
}

export function refusalOf(thrown: unknown): Refusal {
  if (thrown instanceof HttpRefusal) {
    const { status, message, code, headers } = thrown;
    const body: FailedResult =
      code === "request_invalid" ? invalid(message) : failedBy({ code, retryable: false }, message);
    return { status, headers, body };
  }
  return { status: statusOf(thrown), headers: headersOf(thrown), body: failedResult(thrown) };
}

function statusOf(thrown: unknown): number {
  if (thrown instanceof MalformedJson) return 400;
  return isAmbitError(thrown) ? thrown.status : 500;
}

function headersOf(thrown: unknown): Readonly<Record<string, string>> {
  if (!isAmbitError(thrown)) return {};
  if (thrown.code === "unauthorized") return { "www-authenticate": "Bearer" };
  if (!(thrown instanceof AtCapacity)) return {};
  return { "retry-after": String(Math.max(1, Math.ceil(thrown.retryAfterMs / 1_000))) };
}

/** Failures of the request, not of the run: they set the status in every format. */
const connectionStatuses: ReadonlySet<number> = new Set([401, 403, 404, 405, 408, 409, 413, 429]);

/**
 * In the requested format. A stream's one record has the status 200 if it is the outcome of a run: clients of
 * streams throw on any other status without reading the record, which has the reason.
 */
export function sendRefusal(outgoing: ServerResponse, form: ResponseFormat, refusal: Refusal): void {
  const { status, body, headers } = refusal;
  if (form === "json") {
    send(outgoing, status, mediaTypes.json, JSON.stringify(body), headers);
    return;
  }
  const record = onlyRecord(form, body);
  send(outgoing, connectionStatuses.has(status) ? status : 200, mediaTypes[form], record, headers);
}

/** Whether it is a fault of the server, which is logged as an error. */
export function isOurFault(thrown: unknown): boolean {
  return !(thrown instanceof HttpRefusal) && isServerFault(thrown);
}
