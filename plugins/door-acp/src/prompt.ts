import { type ContentBlock, RequestError } from "@agentclientprotocol/sdk/unstable";
import type { RunRequest } from "@ambit/client";
import { insidePath, insideUri, pathOf } from "./places.js";

type Message = NonNullable<RunRequest["messages"]>[number];
/** A block of a message to the agent. */
export type MessageBlock = Exclude<Message["content"], string | undefined>[number];

/** What the editor has of a file that isn't saved yet. Undefined: the same as the file, or it can't say. */
export type ReadUnsaved = (path: string) => Promise<string | undefined>;

/**
 * The user's message to the agent: paths are those that the agent sees. A file of the folder that the prompt names comes along
 * where the editor has unsaved changes of it.
 * @throws RequestError for a block that no agent gets
 */
export async function messageOf(
  prompt: readonly ContentBlock[],
  folder: string,
  readUnsaved: ReadUnsaved,
): Promise<readonly MessageBlock[]> {
  const blocks: MessageBlock[] = [];
  for (const [index, block] of prompt.entries()) {
    blocks.push(blockOf(block, index, folder));
    if (block.type !== "resource_link") continue;
    const path = pathOf(block.uri);
    if (path === undefined || insidePath(folder, path) === undefined) continue;
    const text = await readUnsaved(path);
    if (text === undefined) continue;
    blocks.push({ type: "text", text: `The editor has unsaved changes of ${block.name}:` });
    blocks.push({ type: "resource", uri: insideUri(folder, block.uri), mimeType: "text/plain", text });
  }
  const saysSomething = blocks.some(({ type, text = "" }) => type !== "text" || text.trim() !== "");
  if (!saysSomething) throw RequestError.invalidParams(undefined, "The prompt is empty: say something");
  return blocks;
}

/** Pure. */
function blockOf(block: ContentBlock, index: number, folder: string): MessageBlock {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "image":
      return { type: "image", data: block.data, mimeType: block.mimeType };
    case "resource_link":
      return { type: "text", text: linkText(block, folder) };
    case "resource": {
      const { resource } = block;
      const uri = insideUri(folder, resource.uri);
      const mimeType = resource.mimeType ?? undefined;
      const content = "text" in resource ? { text: resource.text } : { data: resource.blob };
      return { type: "resource", uri, ...content, ...(mimeType === undefined ? {} : { mimeType }) };
    }
    default: {
      const name = `prompt[${index}]`;
      throw RequestError.invalidParams(
        undefined,
        `${name} is of the type '${block.type}': send text, images, resources or links`,
      );
    }
  }
}

function linkText({ name, uri }: ContentBlock & { type: "resource_link" }, folder: string): string {
  const path = pathOf(uri);
  if (path === undefined) return `[${name}](${uri})`;
  const inside = insidePath(folder, path);
  return inside === undefined
    ? `[${name}](${uri}) (outside of the workspace, where you can't read it)`
    : `[${name}](${inside})`;
}

/** The text of a message, by which a conversation is recognised. Pure. */
export function textOf(blocks: readonly MessageBlock[]): string {
  return blocks.flatMap(({ type, text = "" }) => (type === "text" ? [text] : [])).join("");
}
