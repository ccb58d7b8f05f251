/** What a store of runs implements: for the authors of its plugin, and for those who use one. */
export { type RunOutcome, runOutcomeSchema } from "@ambit/core/contract";
export {
  advanceQuestion,
  type Backlog,
  type QuestionStep,
  questionStates,
  type SessionUse,
  statesBefore,
  stepAtLostRun,
} from "@ambit/core/plugin";
export { openedStore } from "./opened-store.js";
export * from "./store.js";
