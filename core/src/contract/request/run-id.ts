import { z } from "zod";

/** Names one run, for `POST /runs/{runId}/cancel` and for logs. */
export const runIdSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/,
    "must be 1 to 128 of A-Z a-z 0-9 _ . : -, beginning with a letter or digit",
  );
