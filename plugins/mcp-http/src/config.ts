import { z } from "zod";

export const configSchema = z.strictObject({
  /**
   * Milliseconds between two progress messages of a long call. Default 10 s: agents abandon a silent call after 60 s,
   * and some count only progress notifications.
   */
  heartbeatMs: z.int().min(10).max(55_000).default(10_000),
});

export type McpHttpConfig = z.output<typeof configSchema>;
