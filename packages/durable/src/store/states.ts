import { type QuestionState, questionStates } from "@ambit/core/plugin";
import { z } from "zod";

/** `queued`: accepted, not begun · `running`: a replica has it · `ended`: it has its one result. */
export const runStateSchema = z.enum(["queued", "running", "ended"]);
export type RunStateName = z.infer<typeof runStateSchema>;

export {
  advanceQuestion,
  type QuestionStep,
  questionStates,
  statesBefore,
  stepAtLostRun,
} from "@ambit/core/plugin";

export const interactionStateSchema = z.enum(questionStates);
export type InteractionState = QuestionState;

/** Of a webhook's message. `pending`: the next attempt follows. `failed`: none does. */
export const deliveryStateSchema = z.enum(["pending", "delivered", "failed"]);
export type DeliveryState = z.infer<typeof deliveryStateSchema>;
