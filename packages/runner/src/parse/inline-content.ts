import type { ContentBlock, Message } from "@ambit/core/contract";

/** Characters before the content of a `data:` URI; a longer prefix isn't read. */
const maxTypeLength = 512;

/** The content of a block from a `data:` URI or base64, ready to be passed on. */
interface Inline {
  readonly mimeType: string;
  /** Base64. */
  readonly data: string;
}

/** Kinds of blocks that SDKs put files and images in. */
const carriers: ReadonlySet<string> = new Set(["image", "file", "resource", "attachment"]);

/** The messages with every inline file in one form: an `image` or a `resource` with `data` and `mimeType`. Pure. */
export function withInlineContent(messages: readonly Message[]): Message[] {
  return messages.map((message) => {
    const { content } = message;
    if (typeof content === "string" || !content.some(({ type }) => carriers.has(type))) return message;
    return { ...message, content: content.map(withContent) };
  });
}

function withContent(block: ContentBlock): ContentBlock {
  if (!carriers.has(block.type)) return block;
  const inline = inlineOf(block);
  if (inline === undefined) return block;
  const { uri, attachmentId: _content, ...rest } = block;
  return {
    ...rest,
    ...(uri === undefined || isDataUri(uri) ? {} : { uri }),
    type: inline.mimeType.startsWith("image/") ? "image" : "resource",
    ...inline,
  };
}

function inlineOf({ type, data, uri, mimeType }: ContentBlock): Inline | undefined {
  for (const value of [data, uri]) {
    if (value === undefined || !isDataUri(value)) continue;
    return readDataUri(value, mimeType ?? unsaid(type));
  }
  if (data === undefined || data === "") return undefined;
  return { data, mimeType: mimeType ?? unsaid(type) };
}

/** For an image without a type: the most common one. */
function unsaid(type: string): string {
  return type === "image" ? "image/png" : "application/octet-stream";
}

function isDataUri(value: string): boolean {
  return /^data:/i.test(value);
}

/** RFC 2397. Undefined for any other URI, which stays a link that the agent may refuse. */
function readDataUri(uri: string, unnamed: string): Inline | undefined {
  const comma = uri.slice(0, maxTypeLength).indexOf(",");
  if (comma === -1) return undefined;
  const [type = "", ...parameters] = uri.slice("data:".length, comma).split(";");
  const mimeType = type === "" ? unnamed : type.toLowerCase();
  const content = uri.slice(comma + 1);
  try {
    const text = content.includes("%") ? decodeURIComponent(content) : content;
    const data = parameters.some((parameter) => parameter.trim().toLowerCase() === "base64")
      ? onOneLine(text)
      : Buffer.from(text).toString("base64");
    return data === "" ? undefined : { mimeType, data };
  } catch {
    // Broken percent-encoding.
    return undefined;
  }
}

/** Base64 without line breaks. Decodes and encodes it: millions of replacements would block the event loop. */
function onOneLine(base64: string): string {
  return /\s/.test(base64) ? Buffer.from(base64, "base64").toString("base64") : base64;
}
