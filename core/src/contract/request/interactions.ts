import { z } from "zod";

/** How a run waits for the user when a call asks for one. */
export const interactionSettingsSchema = z.strictObject({
  waitMs: z.int().nonnegative().max(86_400_000).default(0).meta({
    description:
      "Milliseconds that a call may wait for a live answer (`POST /runs/{runId}/interactions/{id}`) before the run pauses. Default 0: it pauses immediately. Never longer than the agent or the runner lets a call wait.",
  }),
});

/** A live answer: to a `user_approval`, whether the call may be made; to the other kinds, the call's output. */
export const interactionAnswerSchema = z.union([
  z.strictObject({ approved: z.boolean() }),
  z.strictObject({ output: z.unknown(), isError: z.boolean().default(false) }),
]);
export type InteractionAnswer = z.infer<typeof interactionAnswerSchema>;
