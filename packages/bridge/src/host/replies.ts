import { z } from "zod";

/** The guest daemon's replies. It runs in the sandbox, so nothing that it sends is trusted. */
export const refusal = z.object({ refused: z.string().max(4_000) });
export const done = z.object({ done: z.literal(true) });
export const runStarted = z.object({
  started: z.object({ pid: z.int(), uid: z.int() }),
});
export const runEnded = z.object({
  exit: z.object({ code: z.int().nullable(), signal: z.string().nullable() }),
});
export const listening = z.object({ port: z.int().min(1).max(65_535) });
export const insideFacts = z.object({
  searchPath: z.string().max(4_000),
  node: z.string().max(100),
  uid: z.int(),
  ownUsers: z.boolean(),
  whyShared: z.string().max(4_000).optional(),
  openPorts: z.array(z.int().min(1).max(65_535)).max(100),
  closedBy: z.string().max(100).optional(),
  whyOpen: z.string().max(4_000).optional(),
});
export const insideContents = z.object({
  files: z.array(z.string().max(4_096)).max(2_000),
  processes: z.int().nonnegative(),
});
