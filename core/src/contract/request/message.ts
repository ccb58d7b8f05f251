import { z } from "zod";

export const contentBlockSchema = z.strictObject({
  type: z.string().min(1).meta({
    description:
      "`text`, `image` and `resource` go to the agent. `tool_call` and `tool_result` record calls. A `file` or `attachment` with its content in `data` or `uri` becomes an `image` or `resource`. `audio` goes to an agent that takes sound. In this turn's messages, any other type is refused, and so is a file or image without content.",
  }),
  text: z.string().optional().meta({ description: "The text of a `text` block, or of a resource." }),
  data: z.string().optional().meta({
    description: "The content of an `image` or `resource`: base64, or a `data:` URI.",
  }),
  mimeType: z.string().optional().meta({
    description: "The media type of `data`. Default: that of a `data:` URI, else `image/png` for an `image`.",
  }),
  uri: z.string().optional().meta({
    description: "Where a resource is; passed to the agent, not fetched. A `data:` URI is its content.",
  }),
  toolCallId: z.string().optional().meta({
    description:
      "Links a `tool_result` to its `tool_call`. An answer counts only under the id of the `interaction_request` (`ask_…`), after the last text of the user or the last message of the assistant.",
  }),
  toolName: z.string().optional().meta({ description: "The tool that was called." }),
  input: z.unknown().optional().meta({
    description:
      "The call's arguments. An answer counts only for a call with the arguments that it was asked about.",
  }),
  output: z.unknown().optional().meta({
    description: "The call's result, or `{approved}` where a permission was asked for.",
  }),
  isError: z.boolean().optional().meta({ description: "Whether `output` reports a failure." }),
  attachmentId: z.string().optional().meta({
    effect: "refused",
    description:
      "An attachment of this turn is in the platform's own store, which Ambit can't reach: send its content as an `image` or `resource` block. In earlier messages, and beside its content, it is ignored.",
  }),
  filename: z.string().optional().meta({
    effect: "informational",
    description: "The name of an attachment or resource.",
  }),
  size: z.number().optional().meta({
    effect: "informational",
    description: "The size of an attachment, in bytes.",
  }),
});
export type ContentBlock = z.infer<typeof contentBlockSchema>;

export const messageSchema = z.strictObject({
  role: z.enum(["user", "assistant", "system", "tool"]).meta({
    description: "`user`, `assistant`, `system` or `tool`.",
  }),
  content: z
    .union([z.string(), z.array(contentBlockSchema)])
    .default("")
    .meta({ description: "Text, or a list of blocks. Default: empty." }),
});
export type Message = z.infer<typeof messageSchema>;
