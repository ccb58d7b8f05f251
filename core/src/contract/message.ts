import { z } from "zod";

export const contentBlockSchema = z.strictObject({
  /** `text`, `image`, `resource`, `tool_call`, `tool_result`, `attachment`, … */
  type: z.string().min(1),
  text: z.string().optional(),
  /** Base64. */
  data: z.string().optional(),
  mimeType: z.string().optional(),
  uri: z.string().optional(),
  toolCallId: z.string().optional(),
  toolName: z.string().optional(),
  input: z.unknown().optional(),
  output: z.unknown().optional(),
  isError: z.boolean().optional(),
  attachmentId: z.string().optional(),
  filename: z.string().optional(),
  size: z.number().optional(),
});
export type ContentBlock = z.infer<typeof contentBlockSchema>;

export const messageSchema = z.strictObject({
  role: z.enum(["user", "assistant", "system", "tool"]),
  /** Absent where a message holds nothing but what other fields of its wire said. */
  content: z.union([z.string(), z.array(contentBlockSchema)]).default(""),
});
export type Message = z.infer<typeof messageSchema>;

/** A string as it is; of blocks, the texts joined. */
export function messageText(message: Message): string {
  if (typeof message.content === "string") return message.content;
  return message.content.flatMap((block) => (block.type === "text" ? [block.text ?? ""] : [])).join("");
}
