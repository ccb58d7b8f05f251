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

/** How an item is marked; the model doesn't act on it. */
const marks = {
  ...each(scalar, "type id status phase end_turn created_by"),
  ...each(opaque, "metadata internal_chat_message_metadata_passthrough"),
};

const parts = variants(
  {
    ...each(
      object({ ...each(scalar, "type text"), ...each(opaque, "annotations logprobs") }),
      "input_text output_text text",
    ),
    ...each(object(each(scalar, "type text")), "summary_text reasoning_text"),
    refusal: object(each(scalar, "type refusal")),
    encrypted_content: object(each(scalar, "type encrypted_content")),
    ...each(
      object({ ...each(scalar, "type detail"), image_url: dataUrl, file_id: nothing("a stored file") }),
      "input_image computer_screenshot",
    ),
    input_file: object({
      ...each(scalar, "type filename detail"),
      file_data: settings,
      file_url: nothing("a fetch of an address"),
      file_id: nothing("a stored file"),
    }),
    input_audio: object({ type: scalar, input_audio: object(each(settings, "data format")) }),
  },
  { unknown: (type) => `the content ${type}` },
);
const content = orScalar(listOf(parts));

const called = {
  ...marks,
  ...each(scalar, "call_id name namespace"),
  ...each(opaque, "arguments input caller"),
};
const answered = {
  ...marks,
  ...each(scalar, "call_id name namespace success"),
  caller: opaque,
  output: content,
};

const common = each(scalar, "type name description strict defer_loading");
const callable = {
  function: object({
    ...common,
    parameters: jsonSchema,
    output_schema: jsonSchema,
    allowed_callers: settings,
  }),
  custom: object({ ...common, format: settings, allowed_callers: settings }),
};
const tool = variants(
  {
    ...callable,
    // Executed by the agent.
    ...each(object({ type: scalar }), "local_shell apply_patch"),
    ...each(
      object(each(scalar, "type display_width display_height environment")),
      "computer computer_use_preview",
    ),
    namespace: object({
      ...common,
      tools: listOf(variants(callable, { unknown: (type) => `the tool ${type}` })),
    }),
    tool_search: object({ ...common, execution: scalar, parameters: jsonSchema }),
  },
  { unknown: (type) => `the tool ${type}` },
);

const message = object({ ...marks, ...each(scalar, "role name"), content });
const items = variants(
  {
    message,
    function_call: object(called),
    function_call_output: object(answered),
    custom_tool_call: object(called),
    custom_tool_call_output: object(answered),
    reasoning: object({
      ...marks,
      ...each(scalar, "encrypted_content"),
      ...each(content, "summary content"),
    }),
    item_reference: object(each(scalar, "type id")),
    local_shell_call: object({ ...called, action: opaque }),
    local_shell_call_output: object(answered),
    apply_patch_call: object({ ...called, operation: opaque }),
    apply_patch_call_output: object(answered),
    computer_call: object({ ...called, ...each(opaque, "action actions pending_safety_checks") }),
    computer_call_output: object({
      ...marks,
      call_id: scalar,
      acknowledged_safety_checks: opaque,
      output: parts,
    }),
    tool_search_call: object({ ...called, execution: scalar }),
    tool_search_output: object({ ...marks, ...each(scalar, "call_id execution"), tools: listOf(tool) }),
    additional_tools: object({ ...marks, role: scalar, tools: listOf(tool) }),
    ...each(
      object({ ...marks, ...each(scalar, "encrypted_content") }),
      "compaction compaction_summary compaction_trigger context_compaction",
    ),
  },
  { otherwise: message, unknown: (type) => `the item ${type}` },
);

const switches =
  "model stream store background parallel_tool_calls max_output_tokens max_tool_calls previous_response_id temperature top_p top_logprobs truncation user safety_identifier prompt_cache_key prompt_cache_retention service_tier verbosity";

/** OpenAI's Responses. */
export const responses: Form = object({
  ...each(scalar, switches),
  ...each(settings, "stream_options include reasoning tool_choice context_management prompt_cache_options"),
  ...each(opaque, "metadata client_metadata"),
  instructions: scalar,
  text: jsonSchema,
  input: orScalar(listOf(items)),
  tools: listOf(tool),
  prompt: nothing("a stored prompt, which may contain tools"),
  conversation: nothing("a stored conversation, which may contain tools"),
});
