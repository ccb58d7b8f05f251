import { z } from "zod";

/** Something in an accepted request that has no effect, or another one than it seems. The run continues. */
export const warningSchema = z.strictObject({
  /** As in `permissions.rules[2].pattern`; absent where the warning isn't about one field. */
  path: z.string().optional(),
  message: z.string(),
});
export type Warning = z.infer<typeof warningSchema>;
