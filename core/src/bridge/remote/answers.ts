import { z } from "zod";

/** What the half inside answers. It stands in the sandbox, so nothing it says is taken as it comes. */
export const refusal = z.object({ refused: z.string() });
export const done = z.object({ done: z.literal(true) });
export const runStarted = z.object({
  started: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});
export const runEnded = z.object({
  exit: z.object({ code: z.int().nullable(), signal: z.string().nullable() }),
});
export const listening = z.object({ port: z.int().min(1).max(65_535) });
export const insideFacts = z.object({
  workspace: z.string(),
  home: z.string(),
  searchPath: z.string(),
  node: z.string(),
  uid: z.int(),
  ownUsers: z.boolean(),
  whyShared: z.string().optional(),
});
