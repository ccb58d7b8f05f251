/** A body or a file that isn't JSON; the message says where it breaks off. */
import { messageOf } from "@ambit/core";
export class MalformedJson extends Error {
  override readonly name = "MalformedJson";
}

/**
 * The text as JSON; an empty one is `{}`.
 * @param where for the message: "" or " on stdin".
 * @throws MalformedJson
 */
export function parseJson(text: string, where = ""): unknown {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw malformed(cause, where);
  }
}

/** @param cause of `JSON.parse`. */
export function malformed(cause: unknown, where = ""): MalformedJson {
  // V8's message quotes a few characters around the fault, which the caller itself sent.
  return new MalformedJson(`Invalid JSON${where}: ${messageOf(cause)}`, { cause });
}
