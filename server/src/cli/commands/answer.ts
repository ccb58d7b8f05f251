import { parseJson } from "../../parse-json.js";
import { exitCodes } from "../exit-codes.js";
import { type ClientOptions, ServerClient, ServerRefused } from "../server-client.js";
import { openQuestions } from "./runs.js";

export interface AnswerOptions extends ClientOptions {
  readonly approve?: boolean;
  readonly deny?: boolean;
  /** Parsed as JSON if possible, else taken as text. */
  readonly output?: string;
}

/** `ambit answer`: answers a question by its id, whether its run waits or has paused. */
export async function answer(id: string, options: AnswerOptions): Promise<number> {
  const body = bodyOf(options);
  const client = new ServerClient(options);
  const question = (await openQuestions(client)).find((one) => one.id === id);
  if (question === undefined) throw new ServerRefused(`there is no open question ${id}: see \`ambit runs\``);
  const path = `/runs/${encodeURIComponent(question.runId)}/interactions/${encodeURIComponent(id)}`;
  await client.json("POST", path, body);
  const next =
    question.sessionId === undefined ? "" : `; the next turn of session ${question.sessionId} uses it`;
  process.stdout.write(`answered${next}\n`);
  return exitCodes.ok;
}

function bodyOf({ approve, deny, output }: AnswerOptions): object {
  const given = [approve, deny, output].filter((one) => one !== undefined);
  if (given.length !== 1) throw new ServerRefused("say one of --approve, --deny and --output <json>");
  if (output !== undefined) return { output: jsonOrText(output) };
  return { approved: approve === true };
}

function jsonOrText(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
