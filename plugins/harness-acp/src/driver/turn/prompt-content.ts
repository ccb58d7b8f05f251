import type { ContentBlock as AcpBlock } from "@agentclientprotocol/sdk/unstable";
import { type ContentBlock, HarnessFailed, type TraceContext } from "@ambit/core/plugin";

/** Content that the agent accepts in a prompt besides text and links, as `initialize` reported. */
export interface PromptAbilities {
  readonly image: boolean;
  readonly audio: boolean;
  readonly embeddedContext: boolean;
}

/** `_meta` with the trace context of a turn, under the names that ACP reserves for it. */
export function traceMeta({ traceparent, tracestate }: TraceContext): object {
  if (traceparent === undefined) return {};
  return { _meta: { traceparent, tracestate } };
}

/** @throws HarnessFailed for a block that the agent can't take: leaving it out would change the request. */
export function promptContent(
  blocks: readonly ContentBlock[],
  abilities: PromptAbilities,
  title: string,
): AcpBlock[] {
  return blocks.map((block) => acpBlock(block, abilities, title));
}

function acpBlock(block: ContentBlock, abilities: PromptAbilities, title: string): AcpBlock {
  const refused = (what: string) =>
    new HarnessFailed(`${title} doesn't support ${what} in a prompt: remove it.`);
  const uri = block.uri ?? `attachment:${block.attachmentId ?? block.filename ?? "unnamed"}`;
  const mimeType = block.mimeType ?? "application/octet-stream";
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text ?? "" };
    case "image":
    case "audio":
    case "resource":
    case "attachment": {
      const { data } = block;
      if (data !== undefined && mimeType.startsWith("image/")) {
        if (!abilities.image) throw refused("images");
        return { type: "image", data, mimeType };
      }
      if (data !== undefined && mimeType.startsWith("audio/")) {
        if (!abilities.audio) throw refused("sound");
        return { type: "audio", data, mimeType };
      }
      if (block.text !== undefined || data !== undefined) {
        if (!abilities.embeddedContext) throw refused("files");
        const resource =
          block.text !== undefined
            ? { uri, mimeType, text: block.text }
            : { uri, mimeType, blob: data ?? "" };
        return { type: "resource", resource };
      }
      if (block.uri === undefined) throw refused(`a block of type '${block.type}' without content`);
      return {
        type: "resource_link",
        uri: block.uri,
        name: block.filename ?? block.uri,
        ...(block.mimeType === undefined ? {} : { mimeType }),
        size: block.size,
      };
    }
    default:
      throw refused(`a block of type '${block.type}'`);
  }
}
