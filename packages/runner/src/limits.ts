import { z } from "zod";

const milliseconds = z.int().positive().max(2_147_483_647);
const count = z.int().positive();

/** What a limit applies to: each run, each session, or the whole server. */
type Per = "run" | "session" | "server";
const described = (per: Per, description: string) => ({ per, description });

/**
 * How long a run may take, how many there may be, and how much one may hold. The schema describes each limit:
 * docs/reliability.md and the published JSON Schema are generated from it.
 */
export const runLimitsSchema = z.strictObject({
  concurrentRuns: count
    .default(100)
    .meta(described("server", "Concurrent runs; one more is rejected with 429 before any work.")),
  memoryMb: count
    .optional()
    .meta(
      described(
        "server",
        "MiB of JavaScript's heap and of what libraries hold outside it. Above, a new run gets 429; half as much above, the run that holds the most is ended, until the rest fits. Default: half of V8's own limit.",
      ),
    ),
  calls: count
    .default(64)
    .meta(described("server", "Tool calls executed concurrently; waiting runs take turns.")),
  sessions: z
    .int()
    .nonnegative()
    .default(32)
    .meta(
      described(
        "server",
        "Named sessions kept. Beyond that, the least recently used of the same project ends first; a project without one gets 429.",
      ),
    ),
  sessionsPerProject: count
    .optional()
    .meta(
      described(
        "server",
        "Named sessions kept of one project; beyond that, its least recently used ends first. Default: half of `sessions` where callers have tokens of their own, else all.",
      ),
    ),
  sessionTtlMs: milliseconds
    .default(600_000)
    .meta(described("session", "How long it is kept without a run.")),
  runTimeoutMs: milliseconds.default(39_600_000).meta(described("run", "From admission to the result.")),
  idleMs: milliseconds
    .default(1_800_000)
    .meta(described("run", "Between two events of the agent, while no tool call is under way.")),
  agentCallIdleMs: milliseconds
    .default(7_200_000)
    .meta(
      described(
        "run",
        "Between two events of the agent, while a tool call that it executes itself, such as a shell command, has no result yet.",
      ),
    ),
  firstResponseMs: milliseconds
    .default(120_000)
    .meta(described("run", "From the prompt to the agent's first event.")),
  startMs: milliseconds
    .default(60_000)
    .meta(described("run", "To open the sandbox, and again to publish the tools and start the agent.")),
  closeMs: milliseconds
    .default(5_000)
    .meta(described("run", "To close what it opened; what takes longer is left to the reaper, and logged.")),
  pauseMs: milliseconds
    .default(30_000)
    .meta(
      described(
        "run",
        "From the question that a turn pauses for until it ends: calls that are allowed finish meanwhile. What takes longer is stopped, and its outcome is unknown. Half of the time that the agent lets a call wait, if that is shorter.",
      ),
    ),
  modelFailures: count
    .default(3)
    .meta(
      described(
        "run",
        "Requests to its model that fail one after the other; the last of them ends the run with `model_failed`. An answer that ends before it is finished has failed; of those that end at the limit of their length, twice as many do. Counted where a model gateway carries them.",
      ),
    ),
  toolMs: milliseconds
    .default(30_000)
    .meta(described("run", "One tool call, unless the tool says otherwise.")),
  argumentsMs: milliseconds
    .default(2_000)
    .meta(
      described(
        "run",
        "To check one call's arguments against the tool's schema; what takes longer isn't called.",
      ),
    ),
  callsPerRun: count
    .default(8)
    .meta(described("run", "Tool calls executed concurrently; further ones wait.")),
  openCalls: count
    .default(256)
    .meta(
      described(
        "run",
        "Calls and questions without an answer, waiting for the user included; one more is refused.",
      ),
    ),
  reportedCalls: count
    .default(1_000)
    .meta(
      described("run", "Calls that an agent has reported without their results; one more fails the run."),
    ),
  resultCharacters: count
    .default(16_777_216)
    .meta(
      described(
        "run",
        "Characters of texts and events that a result carries. Beyond, a text ends with the number of those that are missing, and `events` has a `data` event `truncated` where they begin to be. A stream has all events.",
      ),
    ),
});
export type RunLimits = z.infer<typeof runLimitsSchema>;
