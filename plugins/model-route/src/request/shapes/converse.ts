import { byMember, each, type Form, jsonSchema, listOf, object, opaque, scalar, settings } from "./form.js";

const fetched = () => "a fetch of an address";
const unknownContent = (key: string) => `the content ${key}`;
const text = { text: scalar };
const image = object({ format: scalar, source: byMember({ bytes: settings }, fetched) });
const document = object({
  ...each(scalar, "format name context"),
  citations: settings,
  source: byMember(
    { bytes: settings, text: scalar, content: listOf(byMember(text, unknownContent)) },
    fetched,
  ),
});

const block = byMember(
  {
    ...text,
    image,
    document,
    toolUse: object({ ...each(scalar, "toolUseId name type"), input: opaque }),
    toolResult: object({
      ...each(scalar, "toolUseId status type"),
      content: listOf(byMember({ ...text, json: opaque, image, document }, unknownContent)),
    }),
    ...each(opaque, "reasoningContent cachePoint"),
  },
  unknownContent,
);

/** Amazon Bedrock's Converse API. */
export const converse: Form = object({
  model: scalar,
  messages: listOf(object({ role: scalar, content: listOf(block) })),
  system: listOf(byMember({ ...text, cachePoint: opaque }, unknownContent)),
  toolConfig: object({
    tools: listOf(
      byMember(
        {
          toolSpec: object({ ...each(scalar, "name description strict"), inputSchema: jsonSchema }),
          cachePoint: opaque,
        },
        (key) => `the tool ${key}`,
      ),
    ),
    toolChoice: settings,
  }).nullish(),
  ...each(settings, "inferenceConfig performanceConfig serviceTier additionalModelResponseFieldPaths"),
  requestMetadata: opaque,
  outputConfig: jsonSchema,
  // Passed to the model's own API, which may have tools of its own.
  additionalModelRequestFields: object(
    each(settings, "thinking reasoning_config anthropic_beta top_k inferenceConfig output_config"),
  ).nullish(),
});
