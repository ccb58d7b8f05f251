import type { InputAnswer, InputQuestion } from "@ambit/core/plugin";
import { z } from "zod";
import type { Pause } from "../../lifetime/pause.js";
import type { UserAnswer } from "../values/answer.js";
import type { Ask } from "./ask.js";
import type { Question } from "./question.js";

/** Questions of one run: more are declined. */
const maxQuestions = 64;

/** A form's values, as ACP and MCP have them: flat. */
const contentSchema = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]),
);

/** Forms and pages that an agent asks its user to fill in or visit. */
export class Elicitation {
  #asked = 0;

  constructor(
    private readonly ask: Ask,
    private readonly pause: Pause,
  ) {}

  /** `park`: the run pauses for the answer. @param withdrawn aborts when the agent takes its question back. */
  async answer({ message, form, url }: InputQuestion, withdrawn?: AbortSignal): Promise<InputAnswer> {
    if (this.pause.isInEffect) return "park";
    if (this.#asked >= maxQuestions) return { action: "decline" };
    this.#asked += 1;
    const question: Question<Exclude<InputAnswer, "park">> = {
      kind: "user_input",
      origin: "agent",
      // What the user sees in place of a tool's name.
      name: "elicitation",
      input: { message, form, url },
      withdrawn,
      read: (given) => {
        const value = accepted(given, form !== undefined);
        return { value, response: { action: value.action } };
      },
    };
    const answer = await this.ask.askOnce(question, true);
    return answer === "withdrawn" ? { action: "decline" } : (answer ?? "park");
  }
}

/** Only an object of flat values is a form's answer. Anything else, and an error, declines. */
function accepted({ output, isError }: UserAnswer, isForm: boolean): Exclude<InputAnswer, "park"> {
  if (isError) return { action: "decline" };
  if (!isForm) return { action: "accept", content: {} };
  const content = contentSchema.safeParse(output);
  return content.success ? { action: "accept", content: content.data } : { action: "decline" };
}
