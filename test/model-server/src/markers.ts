import { z } from "zod";
import type { JsonObject, ScriptedCall } from "./answer.js";

/** One `[[…]]` of a prompt; the grammar is in the README. */
export type Marker =
  | { readonly verb: "say"; readonly text: string }
  | { readonly verb: "think"; readonly text: string }
  | { readonly verb: "call"; readonly calls: readonly ScriptedCall[] }
  | { readonly verb: "slow"; readonly count: number; readonly pauseMs: number }
  | { readonly verb: "http"; readonly status: number }
  | { readonly verb: "cut" | "limit"; readonly calls: readonly ScriptedCall[] }
  | { readonly verb: "hang" }
  | { readonly verb: "drop" };

/** A marker that can't be executed. The message quotes the marker and the problem. */
export class MarkerError extends Error {
  override readonly name = "MarkerError";
}

const jsonObject = z.record(z.string(), z.unknown());

/**
 * The markers of a text in order. A marker ends at the first `]]` at which it is well-formed, so JSON with
 * nested lists needs no escape. `[[` is ordinary text unless a lower-case letter follows.
 * @throws MarkerError for an unknown verb or a malformed marker, so that a typo isn't taken for text.
 */
export function parseMarkers(text: string): readonly Marker[] {
  const markers: Marker[] = [];
  let position = 0;
  for (;;) {
    const opening = text.slice(position).search(/\[\[[a-z]/);
    if (opening === -1) return markers;
    const start = position + opening;
    const { marker, end } = parseMarkerAt(text, start);
    markers.push(marker);
    position = end;
  }
}

function parseMarkerAt(text: string, start: number): { marker: Marker; end: number } {
  let firstProblem: MarkerError | undefined;
  let closing = text.indexOf("]]", start);
  while (closing !== -1) {
    try {
      return { marker: parseBody(text.slice(start + 2, closing)), end: closing + 2 };
    } catch (error) {
      if (!(error instanceof MarkerError)) throw error;
      firstProblem ??= error;
    }
    closing = text.indexOf("]]", closing + 1);
  }
  throw firstProblem ?? new MarkerError(`[[${text.slice(start + 2, start + 60)}: it has no closing ]]`);
}

function parseBody(body: string): Marker {
  const { word: verb, rest } = firstWord(body);
  switch (verb) {
    case "say":
    case "think":
      return { verb, text: rest };
    case "call":
    case "shell":
      return { verb: "call", calls: [parseCall(body)] };
    case "both":
      return { verb: "call", calls: rest.split(";;").map((part) => parseCall(part.trim())) };
    case "slow": {
      const [count, pauseMs] = parseNumbers(body, rest, 2, "[[slow COUNT MILLISECONDS]]");
      return { verb, count: count ?? 0, pauseMs: pauseMs ?? 0 };
    }
    case "http": {
      const [status = 0] = parseNumbers(body, rest, 1, "[[http STATUS]]");
      if (status < 400 || status > 599) throw malformed(body, "STATUS goes from 400 to 599");
      return { verb, status };
    }
    case "cut":
    case "limit":
      return { verb, calls: rest === "" ? [] : [parseCall(rest)] };
    case "hang":
    case "drop":
      if (rest !== "") throw malformed(body, `${verb} takes nothing more`);
      return { verb };
    default:
      throw malformed(body, "use say, think, call, shell, both, slow, cut, limit, http, hang or drop");
  }
}

function parseCall(text: string): ScriptedCall {
  const { word: verb, rest } = firstWord(text);
  if (verb === "shell" && rest !== "") return { shell: rest };
  if (verb !== "call" || rest === "") throw malformed(text, "write call TOOL {…} or shell COMMAND");
  const { word: tool, rest: json } = firstWord(rest);
  return { tool, input: json === "" ? {} : parseJson(text, json) };
}

function parseJson(body: string, json: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new MarkerError(`[[${body}]]: the input isn't JSON: ${String(error)}`, { cause: error });
  }
  const parsed = jsonObject.safeParse(value);
  if (!parsed.success) throw malformed(body, "the input has to be a JSON object");
  return parsed.data;
}

function parseNumbers(body: string, rest: string, count: number, form: string): readonly number[] {
  const words = rest.split(/\s+/);
  if (words.length !== count || words.some((word) => !/^\d{1,6}$/.test(word))) {
    throw malformed(body, `write ${form}`);
  }
  return words.map(Number);
}

function firstWord(text: string): { word: string; rest: string } {
  const [word = ""] = /^\S*/.exec(text) ?? [];
  return { word, rest: text.slice(word.length).trim() };
}

function malformed(body: string, fix: string): MarkerError {
  return new MarkerError(`[[${body}]]: ${fix}`);
}
