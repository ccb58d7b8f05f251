import {
  type JsonObject,
  JsonTooLarge,
  messageJsonLimits,
  parseBoundedJson,
  type ToolOutcome,
} from "@ambit/core/plugin";
import { readPath } from "./json-path.js";

/** The body of a callback's POST. @param context what the runner adds, beside what the model wrote */
export function envelopeOf(id: string, callRef: string, given: unknown, context?: JsonObject): string {
  const data = { id, type: "function", function: { name: callRef, arguments: given } };
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

function parse(body: string, maxValues: number): unknown {
  try {
    return parseBoundedJson(body, { ...messageJsonLimits, maxLength: body.length, maxValues });
  } catch (error) {
    // Not JSON, so not an envelope: the body itself is the result.
    return error instanceof JsonTooLarge ? error : undefined;
  }
}
