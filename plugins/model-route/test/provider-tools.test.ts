import { describe, expect, it } from "vitest";
import { beyondIn, formOf } from "../src/request/shapes/index.js";
import { partsOf } from "../src/request/shapes/parts.js";
import { routeTo, serving, useOf } from "./support/stage.js";

const user = { role: "user" };
const image = (url: string) => [{ ...user, content: [{ type: "image_url", image_url: { url } }] }];
const url = "https://x.test/?q=secret";
const remote = { type: "image", source: { type: "url", url } };
const blocks = (block: object) => ({ messages: [{ ...user, content: [block] }] });
const part = blocks;
const file = (one: object) => ({ input: [{ ...user, content: [one] }] });
const vertex = (publisher: string, verb: string) =>
  `/v1/projects/p/locations/l/publishers/${publisher}/models/m-1:${verb}`;

const calls = {
  messages: { protocol: "anthropic", path: "/v1/messages" },
  responses: { protocol: "openai", path: "/v1/responses" },
  chat: { protocol: "openai", path: "/v1/chat/completions" },
  gemini: { protocol: "gemini", path: "/v1beta/models/m-1:generateContent" },
  claudeOnVertex: { protocol: "vertex", path: vertex("anthropic", "rawPredict") },
  geminiOnVertex: { protocol: "vertex", path: vertex("google", "generateContent") },
  bedrock: { protocol: "bedrock", path: "/model/m-1/invoke" },
  converse: { protocol: "bedrock", path: "/model/m-1/converse" },
} as const;
type Call = keyof typeof calls;

const searching = [{ type: "web_search_20250305", name: "web_search" }];
const beyond: readonly (readonly [Call, string, object])[] = [
  ["messages", "web search", { tools: [{ name: "own", input_schema: {} }, ...searching] }],
  ["messages", "fetches", { tools: [{ type: "web_fetch_20250910", name: "web_fetch" }] }],
  ["messages", "code execution", { tools: [{ type: "code_execution_20250825", name: "code_execution" }] }],
  ["messages", "remote MCP", { mcp_servers: [{ type: "url", url: "https://x.test", name: "x" }] }],
  [
    "messages",
    "an image's address",
    { messages: [{ ...user, content: [{ type: "image", source: { type: "url", url: "https://x.test" } }] }] },
  ],
  [
    "messages",
    "one in a tool's result",
    {
      messages: [
        {
          ...user,
          content: [{ type: "tool_result", content: [{ type: "image", source: { type: "url" } }] }],
        },
      ],
    },
  ],
  ["responses", "web search", { tools: [{ type: "web_search" }] }],
  ["responses", "web search by its older name", { tools: [{ type: "web_search_preview" }] }],
  ["responses", "code execution", { tools: [{ type: "code_interpreter", container: { type: "auto" } }] }],
  ["responses", "remote MCP", { tools: [{ type: "mcp", server_url: "https://x.test" }] }],
  [
    "messages",
    "an image in a document",
    blocks({ type: "document", source: { type: "content", content: [remote] } }),
  ],
  [
    "messages",
    "an image in a tool's result",
    blocks({ type: "tool_result", tool_use_id: "a", content: [remote] }),
  ],
  ["messages", "a document by address", blocks({ type: "document", source: { type: "url", url } })],
  [
    "messages",
    "a program that looks like an own tool",
    { tools: [{ type: "bash_code_execution_20250825" }] },
  ],
  ["messages", "a container", { container: { skills: [{ type: "anthropic", skill_id: "pdf" }] } }],
  ["messages", "a member that isn't known", { web_search: true }],
  ["messages", "a schema in another document", { tools: [{ name: "a", input_schema: { $ref: url } }] }],
  [
    "responses",
    "a screenshot by address",
    { input: [{ type: "computer_call_output", output: { type: "computer_screenshot", image_url: url } }] },
  ],
  ["responses", "tools as an object", { tools: { 0: { type: "web_search" } } }],
  ["responses", "tools within a list", { tools: [[{ type: "web_search" }]] }],
  ["responses", "a file's data that is an address", file({ type: "input_file", file_data: url })],
  ["responses", "a stored conversation", { conversation: { id: "conv_1" } }],
  ["chat", "an image's address as a text", part({ type: "image_url", image_url: url })],
  ["chat", "a video's address", part({ type: "video_url", video_url: { url } })],
  ["chat", "a sound's address", part({ type: "input_audio", input_audio: { data: url } })],
  ["chat", "a file's address", part({ type: "file", file: { file_data: url } })],
  ["chat", "other models", { models: ["m-2"], route: "fallback" }],
  ["chat", "tools within a list", { tools: [[{ type: "function", function: { name: "a" } }]] }],
  [
    "gemini",
    "a file in its instruction",
    { system_instruction: { parts: [{ file_data: { file_uri: url } }] } },
  ],
  ["gemini", "a file's data in another case", { contents: [{ parts: [{ FILEDATA: { fileUri: url } }] }] }],
  ["gemini", "stored content", { cachedContent: "cachedContents/1" }],
  [
    "converse",
    "a video in storage",
    {
      messages: [
        { ...user, content: [{ video: { format: "mp4", source: { s3Location: { uri: "s3://a/b" } } } }] },
      ],
    },
  ],
  ["converse", "the model's own tools", { additionalModelRequestFields: { tools: searching } }],
  ["responses", "a repeated key", { tools: [{ type: "web_search", TYPE: "function" }] }],
  ["responses", "a tool in a namespace", { tools: [{ type: "namespace", tools: [{ type: "mcp" }] }] }],
  [
    "responses",
    "tools that are sent later",
    { input: [{ type: "additional_tools", tools: [{ type: "web_search" }] }] },
  ],
  ["responses", "a stored prompt", { prompt: { id: "pmpt_1" } }],
  [
    "responses",
    "an image's address",
    { input: [{ ...user, content: [{ type: "input_image", image_url: "https://x.test" }] }] },
  ],
  [
    "responses",
    "a file's address",
    { input: [{ ...user, content: [{ type: "input_file", file_url: "https://x.test" }] }] },
  ],
  ["chat", "web search", { web_search_options: {} }],
  ["chat", "a gateway's web search", { plugins: [{ id: "web" }] }],
  ["chat", "an image's address", { messages: image("https://x.test/?q=secret") }],
  [
    "chat",
    "an address longer than the kept part",
    { messages: image(`https://x.test/?q=${"x".repeat(40_000)}`) },
  ],
  ["chat", "an escaped address", { messages: image("h\\u0074tps://x.test") }],
  ["gemini", "web search", { tools: [{ functionDeclarations: [] }, { googleSearch: {} }] }],
  ["gemini", "web search in snake case", { tools: [{ google_search: {} }] }],
  ["gemini", "fetches", { tools: [{ urlContext: {} }] }],
  ["gemini", "code execution", { tools: [{ codeExecution: {} }] }],
  ["gemini", "a file's address", { contents: [{ parts: [{ fileData: { fileUri: "https://x.test" } }] }] }],
  ["claudeOnVertex", "web search", { tools: searching }],
  ["geminiOnVertex", "web search", { tools: [{ googleSearch: {} }] }],
  ["bedrock", "web search", { tools: searching }],
  ["converse", "a system's tool", { toolConfig: { tools: [{ systemTool: { name: "nova_grounding" } }] } }],
];

const own: readonly (readonly [Call, object])[] = [
  [
    "messages",
    {
      tools: [
        { name: "a", input_schema: { type: "object" } },
        { type: "custom", name: "b" },
        { type: "bash_20250124", name: "bash" },
      ],
    },
  ],
  [
    "messages",
    {
      mcp_servers: [],
      messages: [{ ...user, content: [{ type: "image", source: { type: "base64", data: "" } }] }],
    },
  ],
  [
    "responses",
    {
      tools: [
        { type: "function", name: "web_search" },
        { type: "namespace", tools: [{ type: "function" }] },
        { type: "custom" },
      ],
      prompt: null,
    },
  ],
  [
    "responses",
    {
      input: [
        {
          ...user,
          content: [{ type: "input_image", image_url: `data:image/png;base64,${"A".repeat(40_000)}` }],
        },
      ],
    },
  ],
  [
    "chat",
    {
      tools: [{ type: "function", function: { name: "web_search" } }],
      messages: image("data:image/png;base64,AA=="),
    },
  ],
  [
    "gemini",
    {
      tools: [{ functionDeclarations: [{ name: "google_web_search" }] }],
      contents: [{ parts: [{ inlineData: {} }] }],
    },
  ],
  ["claudeOnVertex", { tools: [{ name: "a", input_schema: {} }] }],
  ["converse", { toolConfig: { tools: [{ toolSpec: { name: "a" } }] } }],
];

const credentials = {
  anthropic: { ANTHROPIC_API_KEY: "sk-real-0123456789abcdef" },
  openai: { OPENAI_API_KEY: "sk-real-0123456789abcdef" },
  gemini: { GEMINI_API_KEY: "sk-real-0123456789abcdef" },
  vertex: { CLOUDSDK_AUTH_ACCESS_TOKEN: "sk-real-0123456789abcdef" },
  bedrock: { AWS_BEARER_TOKEN_BEDROCK: "sk-real-0123456789abcdef" },
} as const;

async function post(call: Call, body: object, mode: "on" | "off" | "allowlist", config: object = {}) {
  const { protocol, path } = calls[call];
  const arrived: string[] = [];
  const endpoint = await serving((request, response) => {
    arrived.push(request.url ?? "");
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  const stage = routeTo(
    useOf({ protocol, endpoint, credentials: credentials[protocol] }),
    config,
    undefined,
    mode,
  );
  // An escape in a text is part of the body unchanged.
  const text = JSON.stringify({ model: "m-1", ...body }).replaceAll("\\\\u", "\\u");
  const answer = await stage.send(text, path);
  return { status: answer.status, text: await answer.text(), arrived, decisions: stage.decisions };
}

describe("actions of a provider outside the boundary", () => {
  describe.each(beyond)("%s: %s", (call, _what, body) => {
    it("is refused with the reason if the network is restricted", async () => {
      for (const mode of ["off", "allowlist"] as const) {
        const { status, text, arrived, decisions } = await post(call, body, mode);
        expect({ status, arrived }).toEqual({ status: 403, arrived: [] });
        expect(text).toMatch(
          /it (asks the provider for .*, which acts outside this run's network boundary|has .*, which isn't known to ask only the model)/,
        );
        const capability = mode === "off" ? "network.deny" : "network.allow-host";
        const gap = { capability, fix: expect.stringContaining("allowProviderTools") };
        expect(decisions).toMatchObject([
          { allowed: false, reason: expect.stringMatching(/it (asks|has)/), gap },
        ]);
      }
    });

    it("is allowed if the network is on, or the operator allows it", async () => {
      expect(await post(call, body, "on")).toMatchObject({ status: 200, arrived: [expect.any(String)] });
      expect(await post(call, body, "off", { allowProviderTools: true })).toMatchObject({ status: 200 });
    });
  });

  it("are found in a long request, which is checked in parts", () => {
    const isBeyond = (call: Call, body: object, maxValues: number) => {
      const form = formOf(calls[call].protocol, calls[call].path);
      return [...partsOf(body, maxValues)].some((one) => beyondIn(form, one) !== undefined);
    };
    for (const maxValues of [1, 2, 3, 5, 8, 1_000]) {
      for (const [call, what, body] of beyond)
        expect(isBeyond(call, body, maxValues), `${call}: ${what}, ${maxValues}`).toBe(true);
      for (const [call, body] of own)
        expect(isBeyond(call, body, maxValues), `${call}: ${JSON.stringify(body)}, ${maxValues}`).toBe(false);
    }
  });

  it("are found at the end of thousands of messages", async () => {
    const messages = Array(3_000).fill({ ...user, content: [{ type: "text", text: "a" }] });
    expect(await post("messages", { messages }, "off")).toMatchObject({ status: 200 });
    const { status, text, arrived } = await post(
      "messages",
      { messages: [...messages, { ...user, content: [remote] }] },
      "off",
    );
    expect({ status, arrived }).toEqual({ status: 403, arrived: [] });
    expect(text).toContain("a fetch of an address");
  });

  it.each(own)("don't include what an agent runs itself: %s %j", async (call, body) => {
    expect(await post(call, body, "off")).toMatchObject({ status: 200, arrived: [expect.any(String)] });
  });
});
