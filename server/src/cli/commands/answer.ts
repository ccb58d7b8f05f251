import { interactionsResponseSchema } from "@ambit/durable";
import { parseJson } from "../../parse-json.js";
import { exitCodes } from "../exit-codes.js";
import { type ClientOptions, ServerClient, ServerRefused } from "../server-client.js";

export interface AnswerOptions extends ClientOptions {
  readonly approve?: boolean;
  readonly deny?: boolean;
  /** Parsed as JSON if possible, else taken as text. */
  readonly output?: string;
}

/** `ambit answer`: answers a question by its id, whether its run waits or has paused. */
export async function answer(id: string, options: AnswerOptions): Promise<number> {
  const client = new ServerClient(options);
  const { interactions } = interactionsResponseSchema.parse(
    await client.json("GET", "/interactions?state=open&limit=1000"),
  );
  const question = interactions.find((one) => one.id === id);
  if (question === undefined) throw new ServerRefused(`there is no open question ${id}: see \`ambit runs\``);
  const path = `/runs/${encodeURIComponent(question.runId)}/interactions/${encodeURIComponent(id)}`;
  await client.json("POST", path, bodyOf(options));
  const next =
    question.sessionId === undefined ? "" : `; the next turn of session ${question.sessionId} uses it`;
  process.stdout.write(`answered${next}\n`);
  return exitCodes.ok;
}

function bodyOf({ approve, deny, output }: AnswerOptions): object {
  if (output !== undefined) return { output: jsonOrText(output) };
  if (approve === deny) throw new ServerRefused("say one of --approve, --deny and --output <json>");
  return { approved: approve === true };
}

function jsonOrText(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
