import type { ServerResponse } from "node:http";
import { AtCapacity, type FailedResult, type Failure, isAmbitError } from "@ambit/core";
import { failedResult, invalid } from "../../failed-result.js";
import { MalformedJson } from "../../parse-json.js";
import { encodeRecord, mediaTypes, type ResponseFormat } from "./response-format.js";
import { send, sendJson } from "./send.js";

/** What HTTP itself refuses, which the catalogue of errors has no class for. */
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

/** An answer before anything was streamed. */
export interface Refusal {
  readonly status: number;
  readonly body: FailedResult;
  readonly headers: Readonly<Record<string, string>>;
}

export function refusalOf(thrown: unknown): Refusal {
  if (thrown instanceof HttpRefusal) {
    const { status, message, code, headers } = thrown;
    const body: FailedResult =
      code === "request_invalid"
        ? invalid(message)
        : { ok: false, error: message, failure: { code, retryable: false }, events: [] };
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
  if (thrown.code !== "at_capacity") return {};
  const ms = thrown instanceof AtCapacity ? thrown.retryAfterMs : 1_000;
  return { "retry-after": String(Math.max(1, Math.ceil(ms / 1_000))) };
}

/** What concerns the connection, not the run: these are statuses in every form. */
const connectionStatuses: ReadonlySet<number> = new Set([401, 403, 404, 405, 408, 409, 413, 429]);

/**
 * In the form that was asked for. A stream's one record goes with 200 when it says what became of the run: clients of
 * streams raise on any other status and don't read the record, which has the reason.
 */
export function sendRefusal(outgoing: ServerResponse, form: ResponseFormat, refusal: Refusal): void {
  const { status, body, headers } = refusal;
  if (form === "json") {
    sendJson(outgoing, status, body, headers);
    return;
  }
  const record = encodeRecord(form, { kind: "result", result: body }, 1);
  send(outgoing, connectionStatuses.has(status) ? status : 200, mediaTypes[form], record, headers);
}

/** Whether it is a fault on our side, which is logged as an error. */
export function isOurFault(thrown: unknown): boolean {
  return !(thrown instanceof HttpRefusal) && statusOf(thrown) === 500;
}
