import { parseBoundedJson, wholeWords } from "@ambit/core/plugin";
import { readPath } from "./json-path.js";

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

function parse(body: string): unknown {
  try {
    return parseBoundedJson(body);
  } catch {
    // Not JSON, longer than what was read, or too much of it.
    return undefined;
  }
}
