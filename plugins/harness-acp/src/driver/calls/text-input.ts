import { loopTurnSize } from "@ambit/core/plugin";
import { parseJsonInTurns } from "@ambit/json-turns";
import { beginsAsInput, readInput } from "../../profiles/tool-names.js";
import { isRecord, type JsonRecord, textAt, valueAt } from "../json-reading.js";

/** Inputs that were read from long texts, by the content with that text. */
const read = new WeakMap<readonly unknown[], { readonly input: unknown }>();

/** Reads the input that a long message shows of a call only as text, in turns of the event loop: `textInputOf` has it at once then. */
export async function readTextInput(message: JsonRecord): Promise<void> {
  const call = valueAt(message, "params", "update") ?? valueAt(message, "params", "toolCall");
  if (!isRecord(call) || !Array.isArray(call.content)) return;
  const status = textAt(call, "status");
  // Its text is a result.
  if (status === "completed" || status === "failed") return;
  const text = contentText(call.content);
  if (text.length <= loopTurnSize || !beginsAsInput(text)) return;
  const input = await parseJsonInTurns(text).then(
    ({ value }) => value,
    () => undefined,
  );
  read.set(call.content, { input });
}

/** The input that a call's content shows as text. */
export function textInputOf(content: readonly unknown[]): unknown {
  const known = read.get(content);
  return known === undefined ? readInput(contentText(content)) : known.input;
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
