import { type ContentBlock, type Issue, type Message, maxIssues } from "@ambit/core/contract";
import { historyOf } from "./prompt.js";

/** Blocks that carry a file or an image. */
const media: ReadonlySet<string> = new Set(["image", "audio", "resource", "file", "attachment"]);
/** Blocks that say something or record a call. */
const texts: ReadonlySet<string> = new Set(["text", "tool_call", "tool_result"]);

/** Base64 of RFC 4648, with or without padding, without line breaks: what ACP passes to an agent. */
const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/**
 * What no agent could take of this turn's messages, whose inline content has one form already. Earlier messages may hold
 * anything: a conversation with an attachment in its past continues. Pure.
 */
export function unusableContent(messages: readonly Message[]): Issue[] {
  const issues: Issue[] = [];
  for (let index = historyOf(messages).length; index < messages.length; index += 1) {
    const content = messages[index]?.content ?? "";
    if (typeof content === "string") continue;
    for (const [at, block] of content.entries()) {
      issues.push(...issueOf(block, `messages[${index}].content[${at}]`));
      if (issues.length > maxIssues) return issues;
    }
  }
  return issues;
}

function issueOf(block: ContentBlock, path: string): Issue[] {
  const { type, attachmentId, data, uri, text } = block;
  if (type === "attachment" || attachmentId !== undefined) {
    const message = "is in the platform's own store: send its content as an image or resource block";
    return [{ path: `${path}.attachmentId`, message }];
  }
  if (texts.has(type)) return [];
  if (!media.has(type)) {
    const message = `is '${type}', which agents don't take: use text, image, audio or resource`;
    return [{ path: `${path}.type`, message }];
  }
  if (
    data === undefined &&
    uri === undefined &&
    (type === "image" || type === "audio" || text === undefined)
  ) {
    const message = `is missing: the content of this ${type}, as base64 or a data: URI`;
    return [{ path: `${path}.data`, message }];
  }
  if (data !== undefined && !isBase64(data))
    return [{ path: `${path}.data`, message: "is neither base64 nor a data: URI" }];
  if (uri?.slice(0, "data:".length).toLowerCase() === "data:")
    return [{ path: `${path}.uri`, message: "is no readable data: URI (RFC 2397)" }];
  return [];
}

function isBase64(data: string): boolean {
  return data !== "" && data.length % 4 !== 1 && base64.test(data);
}
