import type { RunRequest } from "@ambit/client";
import { isJsonObject } from "@ambit/core/plugin";
import { z } from "zod";

/** Fields of a run's request. The server validates the whole request when the run begins. */
export const requestSchema = z.custom<RunRequest>(isJsonObject, {
  error: "must be an object of RunRequest's fields",
});

export const configSchema = z.strictObject({
  /** What the request of every run begins with, such as its agent, boundary and tools. Default: nothing. */
  request: requestSchema.default({}),
  /**
   * Milliseconds that a call of a run waits for the user of a client that shows forms (elicitation), before the run pauses.
   * Default: 10 minutes. A run of any other client pauses immediately, and `continue_run` brings the answer.
   */
  answerWaitMs: z.int().nonnegative().max(86_400_000).default(600_000),
  /** Milliseconds between two signs of life of a silent call. Default: 10 s, since clients abandon a silent call after 60 s. */
  heartbeatMs: z.int().min(10).max(55_000).default(10_000),
  /** Milliseconds without a request, after which a session of the 2025 protocols ends. Default: 1 hour. */
  sessionIdleMs: z.int().min(1_000).default(3_600_000),
  /** Sessions of the 2025 protocols that one caller may have open; the one that was used least recently ends. Default: 100. */
  maxSessionsPerCaller: z.int().positive().default(100),
});

export type DoorConfig = z.output<typeof configSchema>;
