import { z } from "zod";

const milliseconds = z.int().positive().max(2_147_483_647);

/** How long a run may take, how many there may be, and how much one may say. Times in milliseconds. */
export const runLimitsSchema = z.strictObject({
  /** Runs at once; one more is refused with 429 before any work. */
  concurrentRuns: z.int().positive().default(100),
  /** From admission to the result. */
  totalMs: milliseconds.default(39_600_000),
  /** Between two events of the agent, while no tool call is under way. */
  idleMs: milliseconds.default(1_800_000),
  /** From the prompt to the agent's first event. */
  firstResponseMs: milliseconds.default(120_000),
  /** To open the sandbox, and again to publish the tools and start the agent. */
  startMs: milliseconds.default(60_000),
  /** One tool call, unless the tool says otherwise. */
  toolMs: milliseconds.default(30_000),
  /** To check one call's arguments against the tool's schema; what takes longer isn't called. */
  argumentsMs: milliseconds.default(2_000),
  /** Tool calls that are executed at once, of one run; further ones wait for their turn. */
  callsPerRun: z.int().positive().default(8),
  /** The same, of all runs together: the runs that wait take turns. */
  calls: z.int().positive().default(64),
  /** Calls and questions of one run that may be open, waiting for the user included; one more fails. */
  openCalls: z.int().positive().default(256),
  /** Calls that an agent may have reported without their results; one more fails the run. */
  reportedCalls: z.int().positive().default(1_000),
  /**
   * MiB of JavaScript's heap and its buffers, in the whole process. Above, a new run is refused with 429; half as much
   * above, the run that holds the most is ended, until the rest fits. Default: half of V8's own limit.
   */
  memoryMb: z.int().positive().optional(),
  /** To close what a run opened; what takes longer is left to the reaper, and logged. */
  closeMs: milliseconds.default(5_000),
  /** How long a named session is kept without a run. */
  sessionMs: milliseconds.default(600_000),
  /** Named sessions kept at once; the one that was used longest ago goes first. */
  sessions: z.int().nonnegative().default(32),
  /**
   * Characters of texts and events together that a result carries. Beyond, a text ends with the number of those that
   * are missing, and `events` has a `data` event `left_out` where they begin to be. A stream's events are all told.
   */
  resultCharacters: z.int().positive().default(16_777_216),
});
export type RunLimits = z.infer<typeof runLimitsSchema>;
