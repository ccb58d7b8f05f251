import { expect } from "vitest";
import type { ApiName } from "../src/index.js";

const anyId = expect.stringMatching(/\w/);
export const PROMPT = '[[think hm]] [[say let me add]] [[both call add {"a":1} ;; shell ls]]';
export const TEXT = "let me add";

/** The JSON body of the response to PROMPT, from each API's reference. */
export const COMPLETIONS: Readonly<Record<ApiName, unknown>> = {
  anthropic: {
    id: anyId,
    type: "message",
    role: "assistant",
    model: "the-model",
    content: [
      { type: "thinking", thinking: "hm", signature: anyId },
      { type: "text", text: TEXT },
      { type: "tool_use", id: anyId, name: "mcp__ambit__add", input: { a: 1 } },
      { type: "tool_use", id: anyId, name: "Bash", input: { command: "ls" } },
    ],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage: {
      input_tokens: 1000,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 200,
      output_tokens: 50,
    },
  },
  "openai-chat": {
    id: anyId,
    object: "chat.completion",
    created: expect.any(Number),
    model: "the-model",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: TEXT,
          reasoning_content: "hm",
          tool_calls: [
            { id: anyId, type: "function", function: { name: "mcp__ambit__add", arguments: '{"a":1}' } },
            { id: anyId, type: "function", function: { name: "bash", arguments: '{"command":"ls"}' } },
          ],
        },
        finish_reason: "tool_calls",
      },
    ],
    usage: {
      prompt_tokens: 1200,
      completion_tokens: 50,
      total_tokens: 1250,
      prompt_tokens_details: { cached_tokens: 200 },
    },
  },
  "openai-responses": {
    id: anyId,
    object: "response",
    created_at: expect.any(Number),
    model: "the-model",
    status: "completed",
    error: null,
    incomplete_details: null,
    parallel_tool_calls: true,
    output: [
      { type: "reasoning", id: anyId, summary: [{ type: "summary_text", text: "hm" }] },
      {
        type: "message",
        id: anyId,
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: TEXT, annotations: [] }],
      },
      {
        type: "function_call",
        id: anyId,
        call_id: anyId,
        name: "add",
        namespace: "mcp__ambit",
        arguments: '{"a":1}',
        status: "completed",
      },
      {
        type: "function_call",
        id: anyId,
        call_id: anyId,
        name: "exec_command",
        arguments: '{"cmd":"ls"}',
        status: "completed",
      },
    ],
    usage: {
      input_tokens: 1200,
      input_tokens_details: { cached_tokens: 200 },
      output_tokens: 50,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 1250,
    },
  },
  gemini: {
    candidates: [
      {
        content: {
          role: "model",
          parts: [
            { text: "hm", thought: true },
            { text: TEXT },
            { functionCall: { name: "mcp__ambit__add", args: { a: 1 } } },
            { functionCall: { name: "run_shell_command", args: { command: "ls" } } },
          ],
        },
        index: 0,
        finishReason: "STOP",
      },
    ],
    usageMetadata: {
      promptTokenCount: 1200,
      cachedContentTokenCount: 200,
      candidatesTokenCount: 50,
      totalTokenCount: 1250,
    },
    modelVersion: "the-model",
    responseId: anyId,
  },
};
