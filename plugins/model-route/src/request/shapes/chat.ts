import {
  dataUrl,
  each,
  type Form,
  jsonSchema,
  listOf,
  nothing,
  object,
  opaque,
  orScalar,
  scalar,
  settings,
  variants,
} from "./form.js";

const cache = { cache_control: settings };

const parts = variants(
  {
    text: object({ ...each(scalar, "type text"), ...cache }),
    refusal: object(each(scalar, "type refusal")),
    image_url: object({
      type: scalar,
      image_url: object({ url: dataUrl, ...each(scalar, "detail") }),
      ...each(scalar, "min_pixels max_pixels"),
      ...cache,
    }),
    input_audio: object({ type: scalar, input_audio: object({ data: settings, format: scalar }), ...cache }),
    file: object({ type: scalar, file: object({ file_data: settings, filename: scalar }), ...cache }),
  },
  { unknown: (type) => `the content ${type}` },
);
const content = orScalar(listOf(parts));

const called = object({ name: scalar, arguments: opaque });
const toolCall = object({
  ...each(scalar, "id type index"),
  function: called.nullish(),
  custom: object({ name: scalar, input: opaque }).nullish(),
  // Signatures of Google's models.
  extra_content: opaque,
});

/** A message. The reasoning has a different name with each provider; none is read as anything else. */
const message = object({
  ...each(scalar, "role name tool_call_id refusal prefix partial"),
  content,
  tool_calls: listOf(toolCall),
  function_call: called.nullish(),
  audio: object({ id: scalar }).nullish(),
  ...each(
    opaque,
    "reasoning reasoning_content reasoning_text reasoning_details reasoning_opaque annotations",
  ),
  ...cache,
});

const declared = object({ ...each(scalar, "name description strict"), parameters: jsonSchema });
const tool = variants(
  {
    function: object({ type: scalar, function: declared, ...cache }),
    custom: object({
      type: scalar,
      custom: object({ ...each(scalar, "name description"), format: settings }),
    }),
  },
  { unknown: (type) => `the tool ${type}` },
);

const sampling =
  "temperature top_p top_k min_p n presence_penalty frequency_penalty repetition_penalty seed logprobs top_logprobs max_tokens max_completion_tokens";
const switches =
  "stream parallel_tool_calls store service_tier user safety_identifier prompt_cache_key prompt_cache_retention reasoning_effort verbosity enable_thinking thinking_budget preserve_thinking tool_stream include_reasoning vl_high_resolution_images background session_id";

/** OpenAI's Chat Completions, with the settings of providers that are compatible with it. */
export const chat: Form = object({
  ...each(scalar, `model ${sampling} ${switches}`),
  ...each(
    settings,
    "stop stream_options logit_bias modalities audio thinking reasoning usage chat_template_kwargs",
  ),
  ...each(opaque, "metadata"),
  tool_choice: settings,
  function_call: settings,
  response_format: jsonSchema,
  prediction: object({ type: scalar, content }).nullish(),
  messages: listOf(message),
  tools: listOf(tool),
  functions: listOf(declared),
  web_search_options: nothing("a search"),
  enable_search: nothing("a search"),
  search_parameters: nothing("a search"),
  plugins: nothing("a search"),
  models: nothing("another model"),
});
