import {
  type JsonObject,
  JsonTooLarge,
  messageJsonLimits,
  parseBoundedJson,
  type ToolOutcome,
  wholeWords,
} from "@ambit/core/plugin";
import { readPath } from "./json-path.js";

/** The body of a callback's POST. @param context what the runner adds, beside what the model wrote */
export function envelopeOf(id: string, callRef: string, input: unknown, context?: JsonObject): string {
  const data = { id, type: "function", function: { name: callRef, arguments: input } };
  return JSON.stringify({ data, context });
}

/**
 * What the platform's 2xx answer means: `call.data.content` as it is when it is a string, as JSON when it is
 * anything else, and the body itself when there is none. `STATUS_CODE_ERROR` is the tool's failure, whatever else
 * the response holds: a model that sees a success would build on it.
 */
export function outcomeOfEnvelope(
  toolName: string,
  body: string,
  maxValues: number = messageJsonLimits.maxValues,
): ToolOutcome {
  // What isn't JSON is no envelope: the body itself is the result.
  const answer = parse(body, maxValues);
  if (answer instanceof JsonTooLarge) {
    const output = `Tool '${toolName}' failed: its answer ${answer.message} (executor-callback's maxAnswerValues). Request less: filter, paginate or summarise.`;
    return { status: "failed", output };
  }
  const content = readPath(answer, "call.data.content");
  const text = typeof content === "string" ? content : content == null ? undefined : JSON.stringify(content);
  if (readPath(answer, "call.status.code") !== "STATUS_CODE_ERROR") {
    return { status: "completed", output: text ?? body };
  }
  const message = readPath(answer, "call.status.message");
  const because = typeof message === "string" && message !== "" ? `: ${message}` : "";
  const details = text === undefined || text === "" ? "" : `\n${text}`;
  return { status: "failed", output: `Tool '${toolName}' failed${because}${details}` };
}

/** A JsonTooLarge for too much of it; undefined for what isn't JSON. */
function parse(body: string, maxValues: number = messageJsonLimits.maxValues): unknown {
  try {
    return parseBoundedJson(body, { ...messageJsonLimits, maxLength: body.length, maxValues });
  } catch (error) {
    return error instanceof JsonTooLarge ? error : undefined;
  }
}

/** Characters of it that reach the model. */
const maxAdviceLength = 2_000;

/**
 * What a platform's error says to the model, to follow the status: its `detail`, as it came, when that is an object with
 * a `code` or a `next_step`. Empty for any other body: what a proxy, a framework or an operator's log line says wasn't
 * written for a model. Pure.
 */
export function adviceIn(body: string): string {
  const answer = parse(body);
  const detail = readPath(answer, "detail");
  if (typeof detail !== "object" || detail === null) return "";
  if (!isText(readPath(answer, "detail.code")) && !isText(readPath(answer, "detail.next_step"))) return "";
  const text = JSON.stringify(detail);
  return `: ${text.length > maxAdviceLength ? `${wholeWords(text, maxAdviceLength)} (cut)` : text}`;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value.trim() !== "";
}
