import type { InputAnswer, InputQuestion } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { z } from "zod";
import { RunEvents } from "../../events/run-events.js";
import { Deadlines } from "../../lifetime/deadlines.js";
import { LinkedAbort } from "../../lifetime/linked-abort.js";
import type { OwnedScope } from "../../lifetime/scope.js";
import { tokens } from "../../tokens.js";
import { Pause } from "../pause.js";
import type { Answer } from "./answer.js";
import { Asking } from "./asking.js";

const kind = "user_input";
/** What the user sees in place of a tool's name. */
const name = "elicitation";
/** Questions of one run: more are declined. */
const maxQuestions = 64;

/** A form's values, as ACP and MCP have them: flat. */
const contentSchema = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]),
);

/** Forms and pages that an agent asks its user to fill in or visit. Answered by the next request's messages, or live. */
@injectable()
export class UserInput {
  #asked = 0;

  constructor(
    @inject(tokens.scope) readonly scope: OwnedScope,
    @inject(Asking) readonly asking: Asking,
    @inject(Pause) readonly pause: Pause,
    @inject(Deadlines) readonly deadlines: Deadlines,
    @inject(RunEvents) readonly events: RunEvents,
  ) {}

  /** `park`: the run pauses for the answer. */
  async answer({ message, form, url }: InputQuestion): Promise<InputAnswer> {
    const { asking, pause, scope, deadlines } = this;
    if (pause.isPaused) return "park";
    if (this.#asked >= maxQuestions) return { action: "decline" };
    this.#asked += 1;
    const input = { message, ...(form === undefined ? {} : { form }), ...(url === undefined ? {} : { url }) };
    const question = { kind, origin: "agent", name, input } as const;
    const stored = await asking.answers().take(question);
    if (stored !== undefined) return this.#answered(stored.id, stored.answer, form !== undefined);
    const id = (await asking.ids()).issue(question);
    const release = deadlines.hold();
    using waiting = new LinkedAbort(scope.signal, pause.signal);
    try {
      const payload = { toolCallId: id, toolName: name, input };
      const answer = await asking.interactions.ask({ id, kind, payload }, waiting.signal);
      if (answer !== undefined) {
        await asking.use(id);
        return this.#answered(id, answer, form !== undefined);
      }
    } finally {
      release();
    }
    pause.begin();
    return "park";
  }

  /** Only an object of flat values is a form's answer. Anything else, and an error, declines. */
  #answered(id: string, { output, isError }: Answer, isForm: boolean): InputAnswer {
    const content = contentSchema.safeParse(output);
    const accepted = !isError && (!isForm || content.success);
    const answer: InputAnswer = !accepted
      ? { action: "decline" }
      : { action: "accept", content: isForm && content.success ? content.data : {} };
    const payload = { toolName: name, action: answer.action };
    this.events.emit({ type: "interaction_response", id, kind, payload });
    return answer;
  }
}
