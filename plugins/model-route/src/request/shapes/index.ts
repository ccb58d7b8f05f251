import type { ModelProtocol } from "@ambit/core/plugin";
import { messages } from "./anthropic.js";
import { chat } from "./chat.js";
import { converse } from "./converse.js";
import type { Form } from "./form.js";
import { quoted } from "./form.js";
import { gemini } from "./gemini.js";
import { responses } from "./responses.js";

/**
 * What a request asks its provider for beyond the model, or what isn't known to ask only the model. Completes "it …".
 * Undefined if it asks only the model. Pure.
 *
 * @param path of the call: some providers have several APIs.
 */
export function beyondModel(protocol: ModelProtocol, path: string, body: unknown): string | undefined {
  const [issue] = formOf(protocol, path).safeParse(body).error?.issues ?? [];
  if (issue === undefined) return undefined;
  if (issue.code === "custom" && issue.message !== "" && issue.message !== "Invalid input")
    return `asks the provider for ${issue.message}, which acts outside this run's network boundary`;
  const keys = issue.code === "unrecognized_keys" ? [...issue.path, issue.keys[0] ?? ""] : issue.path;
  return `has ${quoted(pathText(keys))}, which isn't known to ask only the model`;
}

function formOf(protocol: ModelProtocol, path: string): Form {
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
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
}
