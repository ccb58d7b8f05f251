import {
  codeOf,
  isJsonObject,
  messageOf,
  type PublishedCall,
  RunTimedOut,
  wholeWords,
} from "@ambit/core/plugin";
import {
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from "@modelcontextprotocol/client";
import { NotJson } from "./message-guard.js";

/** A request that has no result for a reason outside it. The message reads on after the server's name. */
abstract class Lost extends Error {
  /** @param output what the server wrote at last, in whole lines. */
  constructor(
    message: string,
    readonly output = "",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The request never left the runner. */
export class NotSent extends Lost {
  override readonly name = "NotSent";
}

/** The request was sent, and its answer will never come. */
export class AnswerLost extends Lost {
  override readonly name = "AnswerLost";
}

/** `none`: the server didn't act on the request. `unknown`: it may have. `answered`: it has answered, with an error. */
type Effect = "none" | "unknown" | "answered";

export interface Failure {
  /** Reads on after the server's name: "could not be reached: it refuses the connection (ECONNREFUSED)". */
  readonly cause: string;
  readonly effect: Effect;
  /** What the server wrote at last; empty if that isn't known. */
  readonly output: string;
}

/**
 * Whether the server refused a request because it doesn't know the session or the protocol that it came with: it wasn't
 * executed. The answer for that is 404; servers that were restarted also send 400, and name what they miss. Pure.
 */
export function isLostSession(error: unknown): boolean {
  if (error instanceof ProtocolError) return error.code === ProtocolErrorCode.UnsupportedProtocolVersion;
  if (!(error instanceof SdkHttpError)) return false;
  if (error.status === 404) return true;
  return error.status === 400 && /session|not initialized|protocol version/i.test(textOf(error));
}

/** What became of a request that has no result. Pure. */
export function failureOf(error: unknown): Failure {
  // The SDK wraps what happened while the protocol's version was negotiated.
  const cause = causesOf(error).find(saysWhatHappened) ?? error;
  const lost = cause instanceof ProtocolError && cause.data instanceof AnswerLost ? cause.data : cause;
  if (lost instanceof NotSent) return { cause: lost.message, effect: "none", output: lost.output };
  if (lost instanceof AnswerLost) return { cause: lost.message, effect: "unknown", output: lost.output };
  return { ...failureOfExchange(lost), output: "" };
}

function saysWhatHappened(error: unknown): boolean {
  return (
    error instanceof NotSent ||
    error instanceof AnswerLost ||
    error instanceof NotJson ||
    error instanceof ProtocolError ||
    (error instanceof SdkError && error.cause === undefined)
  );
}

type Reading = Omit<Failure, "output">;

function failureOfExchange(error: unknown): Reading {
  if (error instanceof ProtocolError) return failureOfAnswer(error);
  if (error instanceof SdkHttpError) return failureOfStatus(error);
  if (error instanceof SdkError) return failureOfSdk(error);
  if (error instanceof NotJson) return { cause: error.message, effect: "unknown" };
  const root = causesOf(error).at(-1);
  // Node says "socket hang up" or "aborted", depending on how far the answer was.
  const reason = codeOf(root) === "ECONNRESET" ? "other side closed" : quoted(messageOf(root));
  return { cause: `failed: ${reason}`, effect: "unknown" };
}

function failureOfAnswer({ code, message }: ProtocolError): Reading {
  const cause =
    code === ProtocolErrorCode.UrlElicitationRequired
      ? "wants its user to open a page first, which Ambit doesn't offer to MCP servers"
      : `failed: ${quoted(message)}`;
  return { cause, effect: "answered" };
}

function failureOfStatus(error: SdkHttpError): Reading {
  const { status } = error;
  const text = quoted(textOf(error).trim());
  const said = text === "" ? "" : ` It wrote: ${text}`;
  return { cause: `${causeOfStatus(status)}.${said}`, effect: status >= 500 ? "unknown" : "none" };
}

function causeOfStatus(status: number): string {
  if (status === 401)
    return "refuses the credentials (HTTP 401): give a token that it accepts in connection.credentials, since Ambit doesn't sign in with OAuth";
  if (status === 403) return "refuses access (HTTP 403): its connection.credentials don't permit it";
  return `answered HTTP ${status}`;
}

function failureOfSdk(error: SdkError): Reading {
  const data = isJsonObject(error.data) ? error.data : {};
  switch (error.code) {
    case SdkErrorCode.RequestTimeout:
      return { cause: `sent no answer for ${Number(data.timeout) / 1_000} s`, effect: "unknown" };
    case SdkErrorCode.ConnectionClosed:
      return { cause: "ended before it answered", effect: "unknown" };
    case SdkErrorCode.ListPaginationExceeded:
      return {
        cause: `lists its tools on more than ${Number(data.listMaxPages)} pages`,
        effect: "answered",
      };
    case SdkErrorCode.CapabilityNotSupported:
      return {
        cause: `waits for an answer to '${String(data.method)}', which Ambit doesn't offer to MCP servers`,
        effect: "unknown",
      };
    case SdkErrorCode.ClientHttpUnexpectedContent: {
      const type = typeof data.contentType === "string" ? data.contentType : "none";
      return { cause: `sent an answer of the type '${quoted(type)}', which isn't MCP`, effect: "unknown" };
    }
    default:
      return { cause: `failed: ${quoted(error.message)}`, effect: "unknown" };
  }
}

function textOf({ data }: SdkHttpError): string {
  return typeof data.text === "string" ? data.text : "";
}

/** Codes of Node and OpenSSL. */
const connectionReasons: readonly (readonly [code: RegExp, reason: string])[] = [
  [/^(ENOTFOUND|EAI_)/, "its name can't be resolved"],
  [/^ECONNREFUSED$/, "it refuses the connection"],
  [/^ETIMEDOUT$/, "it accepts no connection in time"],
  [/CERT|SIGNATURE|ISSUER/, "its certificate isn't accepted"],
  [/^(EPROTO$|ERR_SSL_|ERR_TLS_)/, "the TLS handshake failed"],
];

/** Why there is no connection: "its certificate isn't accepted (CERT_HAS_EXPIRED)". Pure. */
export function reasonOfConnection(error: unknown): string {
  const root = causesOf(error).at(-1);
  const code = codeOf(root) ?? "";
  const [, reason] = connectionReasons.find(([pattern]) => pattern.test(code)) ?? [];
  return reason === undefined ? quoted(messageOf(root)) : `${reason} (${code})`;
}

/** The error and what caused it; of the errors of several addresses the first. */
function causesOf(error: unknown): readonly unknown[] {
  const causes = [error];
  for (let last = error; last instanceof Error && causes.length < maxCauses; ) {
    last = last instanceof AggregateError ? last.errors[0] : last.cause;
    if (last === undefined) break;
    causes.push(last);
  }
  return causes;
}

const maxCauses = 8;
/** Characters of what a server said that an error quotes. */
const maxQuoted = 1_000;

function quoted(text: string): string {
  return wholeWords(text, maxQuoted);
}

const effects: Readonly<Record<Effect, string>> = {
  none: " The call was not made.",
  unknown: " Whether the call had an effect is unknown: find out before you repeat it.",
  answered: "",
};

/** What the model reads about a call that has no result. Pure. */
export function describeCallFailure(
  server: string,
  { name, signal }: Pick<PublishedCall, "name" | "signal">,
  error: unknown,
): string {
  const { cause, effect, output } = failureOf(error);
  if (!signal.aborted)
    return `MCP server '${server}' ${sentence(cause)}${effects[effect]}${quotedOutput(output)}`;
  if (!(signal.reason instanceof RunTimedOut)) return `The call of '${name}' was cancelled.`;
  const late = effect === "none" ? cause : "gave no answer in time";
  return `MCP server '${server}' ${sentence(late)} ${signal.reason.message}${effects[effect]}`;
}

/** The end of a sentence before it is there. Pure. */
export function quotedOutput(output: string): string {
  return output === "" ? "" : ` It wrote:\n${output}`;
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
