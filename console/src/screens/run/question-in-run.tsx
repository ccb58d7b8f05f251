import type { RunPlace } from "../../server/client.js";
import type { Question } from "../../server/run-log.js";
import { QuestionCard } from "../question-card.js";

/** A question where it was asked. */
export function QuestionInRun({
  question,
  place,
}: {
  readonly question: Question;
  readonly place: RunPlace;
}) {
  const { id, kind, payload, state } = question;
  if (state !== "open") return null;
  return <QuestionCard question={{ id, kind, payload, ...place }} />;
}
