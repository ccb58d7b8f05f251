import { z } from "zod";

/** `queued`: accepted, not begun · `running`: a replica has it · `ended`: it has its one result. */
export const runStateSchema = z.enum(["queued", "running", "ended"]);
export type RunStateName = z.infer<typeof runStateSchema>;

/** `used`: by a run. `expired`: it waited too long, or its run ended without a pause. */
export const interactionStateSchema = z.enum(["open", "answered", "used", "expired"]);
export type InteractionState = z.infer<typeof interactionStateSchema>;

/** Of a webhook's message. `pending`: the next attempt follows. `failed`: none does. */
export const deliveryStateSchema = z.enum(["pending", "delivered", "failed"]);
export type DeliveryState = z.infer<typeof deliveryStateSchema>;
