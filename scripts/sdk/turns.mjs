// What a user of the SDK sends, and how its answers are read.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

export const user = (/** @type {string} */ content) => ({ role: "user", content });
export const uiUser = (/** @type {string} */ text) => ({
  id: randomUUID(),
  role: "user",
  parts: [{ type: "text", text }],
});

/** @param {object} more sections of the agent's configuration */
export const agentWith = (more = {}) => ({
  instructions: { agents_md: "You are a helpful assistant." },
  llm: { model: "gpt-5.5", provider: "openai", connection: { mode: "agenta", slug: "scripted" } },
  harness: { kind: "pi_core" },
  sandbox: { kind: "local" },
  runner: { permissions: { default: "allow_reads" } },
  ...more,
});

export const pick = {
  type: "client",
  name: "pick",
  description: "Lets the user pick",
  input_schema: { type: "object", properties: { to: { type: "string" } } },
};
export const gatewayTool = (/** @type {string} */ action, /** @type {string} */ permission) => ({
  type: "gateway",
  provider: "composio",
  integration: "github",
  action,
  connection: "github-main",
  permission,
});
export const gatewayConnection = {
  type: "gateway_connection",
  connection: { provider: "composio", integration: "github", slug: "github-main" },
  policy: { permissions: { default: "inherit", tools: { DELETE_REPO: "deny" } } },
};

/** @param {import("./service.mjs").Turn} turn */
export const textOf = ({ parts }) =>
  parts
    .filter(({ type }) => type === "message_delta" || type === "text-delta" || type === "message")
    .map((part) => part.delta ?? part.data?.delta ?? part.data?.text)
    .join("");
/** @param {import("./service.mjs").Turn} turn @param {string} type */
export const of = ({ parts }, type) => parts.filter((part) => part.type === type);
/** @param {{ runner: string, token: string }} world @param {string} path @param {object} body */
export const ask = ({ runner, token }, path, body) =>
  fetch(`${runner}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });

/** The assistant's message as the user interface keeps it, with one tool's part changed. */
export function uiMessage(
  /** @type {import("./service.mjs").Turn} */ { parts },
  /** @type {string} */ toolCallId,
  /** @type {object} */ changes,
) {
  const call = parts.findLast(
    (part) => part.type === "tool-input-available" && part.toolCallId === toolCallId,
  );
  assert(call, "the call's tool part is there");
  return {
    id: randomUUID(),
    role: "assistant",
    parts: [
      { type: `tool-${call.toolName}`, toolCallId, input: call.input, state: "input-available", ...changes },
    ],
  };
}

/** Waits for a state; the whole case has a time limit. */
export async function until(/** @type {() => Promise<boolean>} */ reached) {
  while (!(await reached())) await new Promise((resolve) => setTimeout(resolve, 200));
}
