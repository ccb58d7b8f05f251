import type { ModelProtocol } from "@ambit/core/plugin";
import type { Captured } from "../json-scan.js";

/**
 * Where a request's body asks the provider to act beyond the model: to search, run code, call another server or fetch
 * an address. Paths in the form of `JsonScan`.
 */
export interface Place {
  readonly path: string;
  /** A description for a refusal; undefined if it asks only the model. Pure. */
  readonly asks: (captured: Captured) => string | undefined;
}

/** Any value but an empty one. */
const whenGiven =
  (what: string): Place["asks"] =>
  ({ value }) =>
    value === null || value === false || (Array.isArray(value) && value.length === 0) ? undefined : what;

/** A tool by its `type`: those that the agent itself runs are allowed. An unknown type may be the provider's own. */
const tools = (path: string, ownForms: RegExp): Place => ({
  path,
  asks: ({ value }) =>
    typeof value === "string" && ownForms.test(value) ? undefined : `the tool ${quoted(value)}`,
});

/** An address that the provider would fetch. Data in the request itself has `data:`. */
const address = (path: string): Place => ({
  path,
  asks: ({ head }) => (/^"data:/i.test(head) || head === "null" ? undefined : "a fetch of an address"),
});

const anthropicTypes =
  /^(custom|(bash|text_editor|computer|memory)_\d{8}|tool_search_tool_(regex|bm25)(_\d{8})?)$/;
const anthropicContent = ["messages[].content[]", "messages[].content[].content[]"] as const;
const anthropic: readonly Place[] = [
  tools("tools[].type", anthropicTypes),
  { path: "mcp_servers", asks: whenGiven("a remote MCP server") },
  ...anthropicContent.map((content) => ({
    path: `${content}.source.type`,
    asks: ({ value }: Captured) =>
      value === "base64" || value === "text" || value === "content" ? undefined : "a fetch of an address",
  })),
];

const openaiTypes =
  /^(function|custom|local_shell|apply_patch|computer|computer_use_preview|namespace|tool_search)$/;
const openai: readonly Place[] = [
  ...["tools[].type", "tools[].tools[].type", "input[].tools[].type", "input[].tools[].tools[].type"].map(
    (path) => tools(path, openaiTypes),
  ),
  ...["web_search_options", "enable_search", "search_parameters", "plugins"].map((path) => ({
    path,
    asks: whenGiven("a search"),
  })),
  { path: "prompt", asks: whenGiven("a stored prompt, which may contain tools") },
  ...[
    "messages[].content[].image_url.url",
    "messages[].content[].file.file_url",
    ...["input[].content[]", "input[].output[]"].flatMap((content) => [
      `${content}.image_url`,
      `${content}.file_url`,
    ]),
  ].map(address),
];

const geminiParts = [
  "contents[].parts[]",
  "contents[].parts[].functionresponse.parts[]",
  "contents[].parts[].function_response.parts[]",
] as const;
const gemini: readonly Place[] = [
  ...["tools[].*", "tools.*"].map((path) => ({
    path,
    asks: ({ key }: Captured) =>
      key === "functiondeclarations" || key === "function_declarations"
        ? undefined
        : `the tool ${quoted(key)}`,
  })),
  ...geminiParts.flatMap((part) =>
    ["filedata", "file_data"].map((name) => ({
      path: `${part}.${name}`,
      asks: whenGiven("a fetch of an address"),
    })),
  ),
];

/** Of the Converse API, which names each tool by a key. */
const converse: readonly Place[] = [
  {
    path: "toolconfig.tools[].*",
    asks: ({ key }) => (key === "toolspec" || key === "cachepoint" ? undefined : `the tool ${quoted(key)}`),
  },
];

const bedrock: readonly Place[] = [...anthropic, ...converse];

/** @param path of the call: Vertex has the APIs of two publishers. Pure. */
export function placesFor(protocol: ModelProtocol, path: string): readonly Place[] {
  switch (protocol) {
    case "anthropic":
      return anthropic;
    case "openai":
      return openai;
    case "gemini":
      return gemini;
    case "bedrock":
      return bedrock;
    case "vertex":
      return path.includes("/publishers/anthropic/") ? anthropic : gemini;
  }
}

function quoted(value: unknown): string {
  return typeof value === "string" && /^[\w.:-]{1,60}$/.test(value) ? `'${value}'` : "of an unknown kind";
}
