import type { ContentBlock, Message } from "../contract/index.js";
import { canonicalJson } from "./canonical-json.js";
import { isUnsettled } from "./settling.js";

/** The user's answer to a parked call, brought by the next request's messages. */
export interface Answer {
  readonly output: unknown;
  readonly isError: boolean;
}

/** What an answer is taken for: leave to run the call, or the call's result itself. */
export type AnswerKind = "approval" | "output";

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
      if (block.type !== "tool_result") continue;
      const call = block.toolCallId === undefined ? undefined : calls.get(block.toolCallId);
      const name = call?.toolName ?? block.toolName;
      const output = block.output ?? block.text;
      // What the runner itself put in place of a result answers nothing.
      if (name === undefined || isUnsettled(output)) continue;
      answers.add(name, call?.input ?? block.input ?? {}, { output, isError: block.isError === true });
    }
    return answers;
  }

  add(name: string, input: unknown, answer: Answer): void {
    const key = keyOf(name, input);
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, [answer]);
    else waiting.push(answer);
  }

  take(kind: AnswerKind, name: string, input: unknown): Answer | undefined {
    const waiting = this.#waiting.get(keyOf(name, input)) ?? [];
    const index = waiting.findIndex((answer) => kind === "output" || approvalIn(answer) !== undefined);
    return index < 0 ? undefined : waiting.splice(index, 1)[0];
  }
}

/** Whether the user approved; undefined when the answer isn't about that. */
export function approvalIn({ output }: Answer): boolean | undefined {
  if (typeof output !== "object" || output === null || !("approved" in output)) return undefined;
  return typeof output.approved === "boolean" ? output.approved : undefined;
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
