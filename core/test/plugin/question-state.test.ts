import { describe, expect, it } from "vitest";
import {
  advanceQuestion,
  type QuestionState,
  type QuestionStep,
  questionStates,
  statesBefore,
  stepAtLostRun,
} from "../../src/plugin/question-state.js";

const steps: readonly QuestionStep[] = [
  "answer",
  "claim",
  "spend",
  "return",
  "lose",
  "drop",
  "expire",
  "withdraw",
];

/** Each row: a state, then the state after each step, `-` where it isn't possible. */
const table = `
            answer    claim    spend  return    lose     drop  expire   withdraw
  open      answered  claimed  -      -         -        used  expired  withdrawn
  answered  -         claimed  -      -         -        used  -        -
  claimed   -         -        used   answered  unknown  -     -        -
  used      -         -        -      -         -        used  -        -
  unknown   -         -        -      -         -        -     -        -
  expired   -         -        -      -         -        -     -        -
  withdrawn -         -        -      -         -        -     -        -`
  .trim()
  .split("\n")
  .slice(1)
  .map((line) => line.trim().split(/\s+/));

describe("a question", () => {
  it.each(table)("that is %s", (state, ...after) => {
    const from = questionStates.find((one) => one === state);
    const next = (step: QuestionStep): QuestionState | "-" =>
      from === undefined ? "-" : (advanceQuestion(from, step) ?? "-");
    expect(steps.map(next)).toEqual(after);
  });

  it("has no way out of a state in which its answer can't be used again", () => {
    expect(table.map(([state]) => state)).toEqual([...questionStates]);
    const final = ["used", "unknown", "expired", "withdrawn"] as const;
    const next = final.flatMap((state) => steps.map((step) => advanceQuestion(state, step) ?? state));
    expect(next.every((state, index) => state === final[Math.floor(index / steps.length)])).toBe(true);
  });

  it("says for a step in which states it is possible", () => {
    expect(statesBefore("claim")).toEqual(["open", "answered"]);
    expect(statesBefore("spend")).toEqual(["claimed"]);
  });

  it("comes back from a lost run, unless its call may have been made", () => {
    expect(["user_approval", "client_tool", "user_input", "of a later version"].map(stepAtLostRun)).toEqual([
      "lose",
      "return",
      "return",
      "return",
    ]);
  });
});
