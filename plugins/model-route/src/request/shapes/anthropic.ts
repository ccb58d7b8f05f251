import {
  each,
  type Form,
  jsonSchema,
  listOf,
  nothing,
  object,
  oneOf,
  opaque,
  orScalar,
  scalar,
  settings,
  variants,
} from "./form.js";

const fetched = () => "a fetch of an address";
const cache = { cache_control: settings };
const data = object({ ...each(scalar, "type media_type"), data: settings });
const text = object({ ...each(scalar, "type text"), citations: opaque, ...cache });

const image = object({
  type: scalar,
  source: variants({ base64: data }, { unknown: fetched }),
  ...cache,
});

const document = object({
  ...each(scalar, "type title context"),
  source: variants(
    {
      base64: data,
      text: data,
      content: object({
        type: scalar,
        content: orScalar(listOf(variants({ text, image }, { unknown: fetched }))),
      }),
    },
    { unknown: fetched },
  ),
  citations: settings,
  ...cache,
});

const searchResult = object({
  // Its source is a label.
  ...each(scalar, "type source title"),
  content: listOf(variants({ text }, { unknown: (type) => `the content ${type}` })),
  citations: settings,
  ...cache,
});

const reference = object({ ...each(scalar, "type tool_name"), ...cache });

const content = (forms: Readonly<Record<string, Form>>): Form =>
  orScalar(listOf(variants(forms, { unknown: (type) => `the content ${type}` })));

/** The blocks of a message. Those that a provider's own tools leave behind aren't among them. */
const blocks = {
  text,
  image,
  document,
  search_result: searchResult,
  tool_use: object({ ...each(scalar, "type id name"), input: opaque, caller: settings, ...cache }),
  tool_result: object({
    ...each(scalar, "type tool_use_id is_error"),
    content: content({ text, image, document, search_result: searchResult, tool_reference: reference }),
    ...cache,
  }),
  thinking: object({ ...each(scalar, "type thinking signature"), ...cache }),
  redacted_thinking: object(each(scalar, "type data")),
  compaction: object({ ...each(scalar, "type content encrypted_content"), ...cache }),
  // The search among the request's own tools.
  server_tool_use: object({
    ...each(scalar, "type id"),
    name: oneOf("a tool of its own", "tool_search_tool_regex", "tool_search_tool_bm25"),
    input: opaque,
    ...cache,
  }),
  tool_search_tool_result: object({ ...each(scalar, "type tool_use_id"), content: opaque, ...cache }),
};

const common = { ...each(scalar, "type name defer_loading strict eager_input_streaming"), ...cache };
const custom = object({
  ...common,
  description: scalar,
  input_schema: jsonSchema,
  input_examples: opaque,
});
const ownSettings = "display_width_px display_height_px display_number enable_zoom max_characters";
const own = object({ ...common, ...each(scalar, ownSettings), input_examples: opaque });

const tools = listOf(
  variants(
    {
      custom,
      // Executed by the agent.
      ...each(own, "bash_* text_editor_* computer_* memory_*"),
      ...each(
        own,
        "tool_search_tool_regex tool_search_tool_regex_* tool_search_tool_bm25 tool_search_tool_bm25_*",
      ),
    },
    { otherwise: custom, unknown: (type) => `the tool ${type}` },
  ),
);

/** Anthropic's Messages API and its count of tokens, also on Bedrock and Vertex AI. */
export const messages = object({
  ...each(
    scalar,
    "model max_tokens stream temperature top_k top_p service_tier inference_geo speed anthropic_version",
  ),
  ...each(
    settings,
    "stop_sequences thinking tool_choice context_management output_config anthropic_beta cache_control",
  ),
  ...each(opaque, "metadata diagnostics"),
  output_format: jsonSchema,
  messages: listOf(object({ role: scalar, content: content(blocks) })),
  system: content({ text }),
  tools,
  mcp_servers: nothing("a remote MCP server"),
  container: nothing("a container"),
});
