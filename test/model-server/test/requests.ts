import type { ApiName } from "../src/index.js";

/** The requests of each API, so that one test can cover all four. */
export interface ApiCase {
  readonly api: ApiName;
  path(streamed: boolean): string;
  /** A request with this prompt, the tools `mcp__ambit__add` and a shell, and the results of earlier calls. */
  body(prompt: string, streamed: boolean, results?: readonly string[]): unknown;
  readonly keyHeader: (key: string) => Record<string, string>;
}

export const KEY_HEADERS: readonly ((key: string) => Record<string, string>)[] = [
  (key) => ({ authorization: `Bearer ${key}` }),
  (key) => ({ "x-api-key": key }),
  (key) => ({ "x-goog-api-key": key }),
];

const ADD_SCHEMA = { type: "object", properties: { a: { type: "number" } } };
const SHELL_SCHEMA = { type: "object", properties: { command: { type: "string" } } };

export const API_CASES: readonly ApiCase[] = [
  {
    api: "anthropic",
    path: () => "/v1/messages",
    keyHeader: (key) => ({ "x-api-key": key }),
    body: (prompt, stream, results = []) => ({
      model: "the-model",
      max_tokens: 100,
      stream,
      tools: [
        { name: "mcp__ambit__add", input_schema: ADD_SCHEMA },
        { name: "Bash", input_schema: SHELL_SCHEMA },
        { type: "web_search_20250305", name: "web_search" },
      ],
      messages: [
        { role: "user", content: prompt },
        ...results.flatMap((content, index) => [
          { role: "assistant", content: [{ type: "tool_use", id: `id-${index}`, name: "Bash", input: {} }] },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: `id-${index}`, content: [{ type: "text", text: content }] },
            ],
          },
        ]),
      ],
    }),
  },
  {
    api: "openai-chat",
    path: () => "/v1/chat/completions",
    keyHeader: (key) => ({ authorization: `Bearer ${key}` }),
    body: (prompt, stream, results = []) => ({
      model: "the-model",
      stream,
      tools: [
        { type: "function", function: { name: "mcp__ambit__add", parameters: ADD_SCHEMA } },
        { type: "function", function: { name: "bash", parameters: SHELL_SCHEMA } },
      ],
      messages: [
        { role: "system", content: "[[say not me]]" },
        { role: "user", content: [{ type: "text", text: prompt }] },
        ...results.flatMap((content, index) => [
          { role: "assistant", content: null, tool_calls: [] },
          { role: "tool", tool_call_id: `id-${index}`, content },
        ]),
      ],
    }),
  },
  {
    api: "openai-responses",
    path: () => "/v1/responses",
    keyHeader: (key) => ({ authorization: `Bearer ${key}` }),
    body: (prompt, stream, results = []) => ({
      model: "the-model",
      stream,
      tools: [
        {
          type: "namespace",
          name: "mcp__ambit",
          tools: [{ type: "function", name: "add", parameters: ADD_SCHEMA }],
        },
        { type: "function", name: "exec_command", parameters: { properties: { cmd: { type: "string" } } } },
        { type: "web_search" },
      ],
      input: [
        { type: "message", role: "developer", content: [{ type: "input_text", text: "[[say not me]]" }] },
        { type: "message", role: "user", content: [{ type: "input_text", text: prompt }] },
        ...results.flatMap((output, index) => [
          { type: "function_call", call_id: `id-${index}`, name: "add", arguments: "{}" },
          { type: "function_call_output", call_id: `id-${index}`, output },
        ]),
      ],
    }),
  },
  {
    api: "gemini",
    path: (streamed) =>
      `/v1beta/models/the-model:${streamed ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    keyHeader: (key) => ({ "x-goog-api-key": key }),
    body: (prompt, _streamed, results = []) => ({
      systemInstruction: { parts: [{ text: "[[say not me]]" }] },
      tools: [
        {
          functionDeclarations: [
            { name: "mcp__ambit__add", parametersJsonSchema: ADD_SCHEMA },
            { name: "run_shell_command", parameters: SHELL_SCHEMA },
          ],
        },
      ],
      contents: [
        { role: "user", parts: [{ text: prompt }] },
        ...results.flatMap((output, index) => [
          { role: "model", parts: [{ functionCall: { name: "run_shell_command", args: {} } }] },
          {
            role: "user",
            parts: [
              { functionResponse: { id: `id-${index}`, name: "run_shell_command", response: { output } } },
            ],
          },
        ]),
      ],
    }),
  },
];

export async function post(
  url: string,
  body: unknown,
  options: { headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...options.headers },
    body: JSON.stringify(body),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
}

/** The events of a finished stream: `event` with the parsed `data`; `[DONE]` stays text. */
export function eventsOf(stream: string): readonly { event: string | undefined; data: unknown }[] {
  return stream
    .split("\n\n")
    .filter((block) => block.includes("data: "))
    .map((block) => {
      const data = /^data: (.*)$/m.exec(block)?.[1] ?? "";
      return { event: /^event: (.*)$/m.exec(block)?.[1], data: data === "[DONE]" ? data : JSON.parse(data) };
    });
}
