import type { InteractionAnswer } from "@ambit/client";
import { exitCodes } from "../exit-codes.js";
import { jsonOrText } from "../read-request.js";
import { type ClientOptions, CommandRefused, connect } from "../server-client.js";
import { theOneMeant } from "../typed-id.js";
import { openQuestions } from "./runs.js";

export interface AnswerOptions extends ClientOptions {
  readonly approve?: boolean;
  readonly deny?: boolean;
  /** Parsed as JSON if possible, else taken as text. */
  readonly output?: string;
}

/** `ambit answer`: answers a question, whether its run waits or has paused. @param typed its id, or as much of it as is unique */
export async function answer(typed: string, options: AnswerOptions): Promise<number> {
  const body = bodyOf(options);
  const client = connect(options);
  const open = await openQuestions(client);
  const id = theOneMeant(
    "open question",
    typed,
    open.map((one) => one.id),
  );
  const question = open.find((one) => one.id === id);
  if (question === undefined)
    throw new CommandRefused(`there is no open question ${typed}: see \`ambit runs\``);
  await client.answer(question.runId, question.id, body);
  const next =
    question.sessionId === undefined ? "" : `; the next turn of session ${question.sessionId} uses it`;
  process.stdout.write(`answered${next}\n`);
  return exitCodes.ok;
}

function bodyOf({ approve, deny, output }: AnswerOptions): InteractionAnswer {
  const typed = [approve, deny, output].filter((option) => option !== undefined);
  if (typed.length !== 1) throw new CommandRefused("say one of --approve, --deny and --output <json>");
  if (output !== undefined) return { output: jsonOrText(output) };
  return { approved: approve === true };
}
