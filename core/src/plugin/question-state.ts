/**
 * How far a question to a user has got. `open`: it waits for its answer · `answered`: the answer waits for its call ·
 * `claimed`: a run uses the answer now · `used`: the outcome is known, and the answer can't be used again · `unknown`: the
 * run that used it ended before the outcome was known · `expired`: it waited too long, or its run ended without a pause ·
 * `withdrawn`: the agent took it back while it waited.
 */
export const questionStates = [
  "open",
  "answered",
  "claimed",
  "used",
  "unknown",
  "expired",
  "withdrawn",
] as const;
export type QuestionState = (typeof questionStates)[number];

/**
 * What happens to a question. `answer`: its user answers · `claim`: a run is about to use the answer · `spend`: the outcome
 * is known, whether the call was executed, denied, or failed · `return`: the call wasn't made, and the answer counts for the
 * next one · `lose`: the call was made, and its outcome isn't known · `drop`: the answer won't be needed, since another
 * question about the same call was answered, or the outcome was seen · `expire`: it has waited too long · `withdraw`: the
 * agent takes it back.
 */
export type QuestionStep = "answer" | "claim" | "spend" | "return" | "lose" | "drop" | "expire" | "withdraw";

const transitions: {
  readonly [State in QuestionState]: { readonly [Step in QuestionStep]?: QuestionState };
} = {
  open: { answer: "answered", claim: "claimed", drop: "used", expire: "expired", withdraw: "withdrawn" },
  answered: { claim: "claimed", drop: "used" },
  claimed: { spend: "used", return: "answered", lose: "unknown" },
  used: { drop: "used" },
  unknown: {},
  expired: {},
  withdrawn: {},
};

/** The next state; undefined where the step isn't possible. Pure. */
export function advanceQuestion(state: QuestionState, step: QuestionStep): QuestionState | undefined {
  return transitions[state][step];
}

/** The states in which a step is possible, for a store that changes many questions at once. Pure. */
export function statesBefore(step: QuestionStep): readonly QuestionState[] {
  return questionStates.filter((state) => advanceQuestion(state, step) !== undefined);
}

/**
 * The step for an answer whose run ended without reporting an outcome, as when its process was killed. An approved call may
 * have been executed, so its outcome is unknown. An output or a form's values only reach the agent, which ended with its
 * run, so they can be used again. Pure.
 */
export function stepAtLostRun(kind: string): "return" | "lose" {
  return kind === "user_approval" ? "lose" : "return";
}
