import { setImmediate as nextTurn } from "node:timers/promises";
import type { ModelProtocol } from "@ambit/core/plugin";
import { messages } from "./anthropic.js";
import { chat } from "./chat.js";
import { converse } from "./converse.js";
import type { Form } from "./form.js";
import { quoted } from "./form.js";
import { gemini } from "./gemini.js";
import { partsOf } from "./parts.js";
import { responses } from "./responses.js";

/**
 * What a request asks its provider for beyond the model, or what isn't known to ask only the model. Completes "it …".
 * Undefined if it asks only the model. A long request is checked in turns of the event loop.
 *
 * @param path of the call: some providers have several APIs.
 */
export async function beyondModel(
  protocol: ModelProtocol,
  path: string,
  body: unknown,
): Promise<string | undefined> {
  const form = formOf(protocol, path);
  for (const part of partsOf(body)) {
    if (part !== body) await nextTurn();
    const beyond = beyondIn(form, part);
    if (beyond !== undefined) return beyond;
  }
  return undefined;
}

/** Of one part, or of a whole request. Pure. */
export function beyondIn(form: Form, part: unknown): string | undefined {
  const [issue] = form.safeParse(part).error?.issues ?? [];
  if (issue === undefined) return undefined;
  if (issue.code === "custom" && issue.message !== "" && issue.message !== "Invalid input")
    return `asks the provider for ${issue.message}, which acts outside this run's network boundary`;
  const keys = issue.code === "unrecognized_keys" ? [...issue.path, issue.keys[0] ?? ""] : issue.path;
  return `has ${quoted(pathText(keys))}, which isn't known to ask only the model`;
}

/** The form of a request that asks only the model. Pure. */
export function formOf(protocol: ModelProtocol, path: string): Form {
  switch (protocol) {
    case "anthropic":
      return messages;
    case "openai":
      return path.endsWith("/responses") ? responses : chat;
    case "gemini":
      return gemini;
    case "bedrock":
      return /\/converse(-stream)?$/.test(path) ? converse : messages;
    case "vertex":
      return path.includes("/publishers/anthropic/") ? messages : gemini;
  }
}

function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((key) => (typeof key === "number" ? "[]" : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
}
