import type { RequestError } from "@agentclientprotocol/sdk/unstable";
import {
  HarnessFailed,
  isJsonObject,
  ModelFailed,
  type Process,
  parseBoundedJson,
  resultWithin,
} from "@ambit/core/plugin";
import { shortLine, textAt, valueAt } from "./json-reading.js";
import { AgentMessageRefused } from "./limits.js";

/** The agent no longer reads its input. */
export class InputClosed extends Error {
  constructor(cause: unknown) {
    super("the agent's input is closed", { cause });
  }
}

/** Codes of JSON-RPC itself: the conversation between driver and agent is broken. */
const protocolErrors: ReadonlySet<number> = new Set([-32700, -32600, -32601, -32602]);
const authenticationRequired = -32000;
const internalError = -32603;

/**
 * The meaning of an error response. Agents report a failed model as an HTTP status in the error's code (Gemini), as
 * `authentication required`, or as an internal error with a hint in `data`.
 */
export function requestFailure(
  error: RequestError,
  title: string,
  doing: string,
): HarnessFailed | ModelFailed {
  const words = providerMessage(error);
  const options = { cause: error };
  if (error.code === authenticationRequired) {
    return new ModelFailed(
      `${title} has no valid credential for its model (${words}): give one in modelConnection.credentials.`,
      options,
    );
  }
  const status = httpStatus(error);
  // Gemini reports a failed or interrupted connection this way.
  if (status === 500 && error.code === status && !error.message.includes("{")) {
    return modelFailure(title, words, options);
  }
  if (status !== undefined) {
    return new ModelFailed(`The model of ${title} answered with ${status}: ${words}`, {
      ...options,
      upstreamStatus: status,
      retryable: isRetryable(status),
    });
  }
  const modelStatus = error.code === internalError ? statusIn(words) : undefined;
  if (modelStatus !== undefined) return modelFailure(title, words, options);
  const kind = modelsErrorKind(error);
  if (kind !== undefined) {
    const retryable = /rate|limit|overload|server|unavailable|timeout|connection/i.test(kind);
    return new ModelFailed(`The model of ${title} failed (${shortLine(kind, 60)}): ${words}`, {
      ...options,
      retryable,
    });
  }
  if (protocolErrors.has(error.code)) {
    return new HarnessFailed(`${title} refused ${doing} (${error.code}): ${words}`, options);
  }
  return new HarnessFailed(`${title} failed during ${doing}: ${words}`, options);
}

/** A failure that the agent reports only as text: most begin with the status of the model's response. */
export function modelFailure(title: string, words: string, options: ErrorOptions = {}): ModelFailed {
  const status = statusIn(words);
  const said = shortLine(sentenceIn(words)) || "no reason given";
  if (status === undefined) {
    // The connection failed, or the response was interrupted: a second try may succeed.
    return new ModelFailed(`The model of ${title} failed: ${said}`, { ...options, retryable: true });
  }
  return new ModelFailed(`The model of ${title} answered with ${status}: ${said}`, {
    ...options,
    upstreamStatus: status,
    retryable: isRetryable(status),
  });
}

function statusIn(words: string): number | undefined {
  const [, digits] =
    /^(?:Internal error: )?(?:API Error: |Error: |HTTP )?(?:Request rejected \(|unexpected status |exceeded retry limit, last status: )?([45]\d\d)\b/i.exec(
      words.trim(),
    ) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

function isRetryable(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/** The agent's process or its output ended while a response was expected. */
export async function agentGone(gone: {
  readonly process: Process;
  readonly title: string;
  readonly doing: string;
  readonly reason: unknown;
  readonly errorOutput: () => string;
}): Promise<HarnessFailed> {
  const { process, title, doing, reason, errorOutput } = gone;
  if (reason instanceof AgentMessageRefused) {
    return new HarnessFailed(`${title} ${reason.message}, during ${doing}.`, { cause: reason });
  }
  const exit = await resultWithin(process.exit, 1_000);
  const how =
    exit === undefined
      ? `closed its ${isBrokenInput(reason) ? "input" : "output"}`
      : exit.signal === null
        ? `ended with exit code ${exit.code}`
        : `was ended by ${exit.signal}`;
  // Only as the cause: what a program prints as it dies may contain anything.
  const cause = new Error(`its error output ended with: ${errorOutput().trim() || "(nothing)"}`, {
    cause: reason,
  });
  return new HarnessFailed(`${title} ${how} during ${doing}; the runner's log has its last output.`, {
    cause,
  });
}

function isBrokenInput(reason: unknown): boolean {
  return reason instanceof InputClosed || valueAt(reason, "code") === "EPIPE";
}

function httpStatus(error: RequestError): number | undefined {
  if (error.code >= 400 && error.code < 600) return error.code;
  if (error.code !== internalError) return undefined;
  const stated = valueAt(error.data, "status") ?? valueAt(error.data, "statusCode");
  return typeof stated === "number" && stated >= 400 && stated < 600 ? stated : undefined;
}

/** Claude: `errorKind`; OpenCode: `errorName`; Codex: `codex_error_info`, a word or an object with one key. */
function modelsErrorKind(error: RequestError): string | undefined {
  if (error.code !== internalError || !isJsonObject(error.data)) return undefined;
  const kind = textAt(error.data, "errorKind") ?? textAt(error.data, "errorName");
  if (kind !== undefined) return kind;
  const info = error.data.codex_error_info;
  if (typeof info === "string") return info;
  return isJsonObject(info) ? Object.keys(info)[0] : undefined;
}

/** The provider's message, which agents pass on as JSON in a message, or in a message of `data`. */
function providerMessage(error: RequestError): string {
  const data = isJsonObject(error.data) ? error.data : {};
  const details = textAt(data, "details") ?? textAt(data, "message") ?? "";
  const sentence = sentenceIn(error.message);
  const said = /^internal error$/i.test(sentence) && details !== "" ? sentenceIn(details) : sentence;
  return shortLine(said) || "no reason given";
}

/** Characters of a provider's response that are read. A response can have another one in it, and that one again. */
const maxResponse = 65_536;

function sentenceIn(text: string): string {
  const start = text.indexOf("{");
  if (start === -1 || text.length - start > maxResponse) return text;
  try {
    const body = parseBoundedJson(text.slice(start));
    const message = valueAt(body, "error", "message") ?? valueAt(body, "message");
    // Gemini wraps its provider's whole response once more.
    return typeof message === "string" ? sentenceIn(message) : text;
  } catch {
    // A brace in ordinary text.
    return text;
  }
}
