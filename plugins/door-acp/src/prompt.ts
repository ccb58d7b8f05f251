import { pathToFileURL } from "node:url";
import { type ContentBlock, RequestError } from "@agentclientprotocol/sdk/unstable";
import type { RunRequest } from "@ambit/client";
import { insidePath, insideUri, outsidePath, outsideUri, pathOf } from "./places.js";

type Message = NonNullable<RunRequest["messages"]>[number];
/** A block of a message to the agent. */
export type MessageBlock = Exclude<Message["content"], string | undefined>[number];

/** What the editor has of a file that isn't saved yet. Undefined: the same as the file, or it can't say. */
export type ReadUnsaved = (path: string) => Promise<string | undefined>;

/** How the text begins that stands before a file's unsaved text. */
const unsaved = "The editor has unsaved changes of";

/** What stands in a stored request for what is too large to be kept. */
const leftOut = "[redacted]";

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
    blocks.push({ type: "text", text: `${unsaved} ${block.name}:` });
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

/** What the user of the editor said, from the request of a run. What was added to it for the agent isn't shown. Pure. */
export function promptOf(request: RunRequest | undefined, folder: string): ContentBlock[] {
  const blocks = userBlocks(request);
  const isNote = (index: number) => isUnsavedNote(blocks[index]) && blocks[index + 1]?.type === "resource";
  return blocks.flatMap((block, index) =>
    isNote(index) || isNote(index - 1) ? [] : [shownBlock(block, folder)],
  );
}

/** The blocks of a request's latest message. Pure. */
export function userBlocks(request: RunRequest | undefined): readonly MessageBlock[] {
  const content = request?.messages?.at(-1)?.content ?? [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

const isUnsavedNote = (block: MessageBlock | undefined) =>
  block?.type === "text" && block.text?.startsWith(unsaved) === true;

const linkPattern = /^\[([^\]]*)\]\((.*?)\)(?: \(outside of the workspace, where you can't read it\))?$/;

function shownBlock(
  { type, text = "", data, mimeType, uri = "" }: MessageBlock,
  folder: string,
): ContentBlock {
  if (type === "image" && data !== undefined && data !== leftOut)
    return { type: "image", data, mimeType: mimeType ?? "image/png" };
  if (type === "resource") {
    const of = { uri: outsideUri(folder, uri), ...(mimeType === undefined ? {} : { mimeType }) };
    return { type, resource: data === undefined ? { ...of, text } : { ...of, blob: data } };
  }
  const [, name, place = ""] = linkPattern.exec(text) ?? [];
  if (name !== undefined)
    return {
      type: "resource_link",
      name,
      uri: place.startsWith("/") ? pathToFileURL(outsidePath(folder, place)).href : place,
    };
  return { type: "text", text: type === "text" ? text : `[${type}]` };
}

/** The text of a message, by which a conversation is recognised. Pure. */
export function textOf(blocks: readonly MessageBlock[]): string {
  return blocks.flatMap(({ type, text = "" }) => (type === "text" ? [text] : [])).join("");
}
