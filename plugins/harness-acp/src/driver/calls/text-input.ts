import { readInput } from "../../profiles/tool-names.js";
import { isRecord, textAt } from "../json-reading.js";

/** The input that a call's content shows as text. */
export function textInputOf(content: readonly unknown[]): unknown {
  return readInput(contentText(content));
}

/** The texts of a call's content. */
export function contentText(content: readonly unknown[]): string {
  return joined(
    content.map((part) => {
      if (!isRecord(part)) return undefined;
      if (part.type === "diff") return `${textAt(part, "path") ?? "A file"} was changed.`;
      return isRecord(part.content) ? textAt(part.content, "text") : undefined;
    }),
  );
}

/** One text of several, without those that are empty. */
export function joined(texts: readonly (string | undefined)[]): string {
  return texts.filter((text) => text !== undefined && text !== "").join("\n");
}
