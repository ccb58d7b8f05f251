import type { ContentBlock, Message } from "../contract/index.js";
import { canonicalJson } from "./canonical-json.js";

/** The user's answer to a parked call, brought by the next request's messages. */
export type Answer =
  | { readonly kind: "approval"; readonly approved: boolean }
  | { readonly kind: "output"; readonly output: unknown; readonly isError: boolean };

/**
 * Answers by the call they were given for: name and arguments. Each is used once, the oldest first; an answer
 * for other arguments is none.
 */
export class Answers {
  readonly #waiting = new Map<string, Answer[]>();

  /** Takes the answers of the messages' tail: what stands before the last turn was for another run. */
  static of(messages: readonly Message[]): Answers {
    const answers = new Answers();
    const calls = new Map(blocksOf(messages).flatMap((block) => callOf(block)));
    for (const block of blocksOf(tailOf(messages))) {
      if (block.type !== "tool_result" || block.toolCallId === undefined) continue;
      const call = calls.get(block.toolCallId);
      const name = call?.toolName ?? block.toolName;
      if (name === undefined) continue;
      answers.add(name, call?.input ?? block.input ?? {}, answerOf(block));
    }
    return answers;
  }

  add(name: string, input: unknown, answer: Answer): void {
    const key = keyOf(name, input);
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, [answer]);
    else waiting.push(answer);
  }

  take<Kind extends Answer["kind"]>(
    kind: Kind,
    name: string,
    input: unknown,
  ): Extract<Answer, { kind: Kind }> | undefined {
    const waiting = this.#waiting.get(keyOf(name, input));
    const index = waiting?.findIndex((answer) => answer.kind === kind) ?? -1;
    const [taken] = index < 0 ? [] : (waiting?.splice(index, 1) ?? []);
    return isOf(kind, taken) ? taken : undefined;
  }
}

function isOf<Kind extends Answer["kind"]>(
  kind: Kind,
  answer: Answer | undefined,
): answer is Extract<Answer, { kind: Kind }> {
  return answer?.kind === kind;
}

function keyOf(name: string, input: unknown): string {
  return `${name} ${canonicalJson(input)}`;
}

function blocksOf(messages: readonly Message[]): readonly ContentBlock[] {
  return messages.flatMap(({ content }) => (typeof content === "string" ? [] : content));
}

/** The messages after the assistant's last, which can only be answers and a new prompt. */
function tailOf(messages: readonly Message[]): readonly Message[] {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.slice(last + 1);
}

function callOf(block: ContentBlock): [string, ContentBlock][] {
  return block.type === "tool_call" && block.toolCallId !== undefined ? [[block.toolCallId, block]] : [];
}

function answerOf({ output, isError }: ContentBlock): Answer {
  if (
    typeof output === "object" &&
    output !== null &&
    "approved" in output &&
    typeof output.approved === "boolean"
  ) {
    return { kind: "approval", approved: output.approved };
  }
  return { kind: "output", output, isError: isError === true };
}
