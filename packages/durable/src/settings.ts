import { z } from "zod";

const milliseconds = z.int().positive().max(2_147_483_647);
const day = 86_400_000;

/** Settings for stored runs. Each is described in the schema itself. */
export const storeSettingsSchema = z.strictObject({
  maxAgeMs: z
    .int()
    .positive()
    .default(7 * day)
    .meta({ description: "Milliseconds that an ended run is kept." }),
  maxMiB: z.int().positive().default(1_024).meta({
    description:
      "MiB of all events, results, and answers to paused runs; beyond, the runs that ended first are deleted. Also of the requests of queued runs; beyond, 429.",
  }),
  runMiB: z
    .int()
    .positive()
    .default(256)
    .meta({ description: "MiB of one run's events; a run that produces more ends with `at_capacity`." }),
  interactionMs: z
    .int()
    .positive()
    .default(7 * day)
    .meta({ description: "Milliseconds that a question of a paused run waits for its answer." }),
  leaseMs: milliseconds.min(1_000).default(15_000).meta({
    description:
      "Milliseconds that a replica may act after its last heartbeat; then it ends its runs. A third later, others end them as `runner_lost`.",
  }),
  retryTimeoutMs: milliseconds.default(30_000).meta({
    description:
      "Milliseconds that a run waits for a store that can't be reached or is full; then it ends. Not longer than `leaseMs` while no heartbeat gets through.",
  }),
  answerTimeoutMs: milliseconds.default(5_000).meta({
    description:
      "Milliseconds that a request waits for a store that can't be reached or is full; then the response is 503.",
  }),
  queuedRuns: z
    .int()
    .nonnegative()
    .default(1_000)
    .meta({ description: "Detached runs that wait for a free slot; beyond that, 429." }),
});
export type StoreSettings = z.infer<typeof storeSettingsSchema>;

/** Settings for runs on a server without a store: they and their events are in the memory of its process. */
export const memorySettingsSchema = z.strictObject({
  maxAgeMs: milliseconds
    .default(300_000)
    .meta({ description: "Milliseconds that an ended run and its questions are kept." }),
  maxMiB: z.int().positive().default(64).meta({
    description:
      "MiB of all ended runs; beyond, the one that ended first goes, of the project that has the most, and those with an open question last. Also of the requests of queued runs; beyond, 429.",
  }),
  runMiB: z.int().positive().default(2).meta({
    description: "MiB of one run's latest events that readers can go back to; earlier ones are dropped.",
  }),
  queuedRuns: z
    .int()
    .nonnegative()
    .default(100)
    .meta({ description: "Detached runs that wait for a free slot; beyond that, 429." }),
});
export type MemorySettings = z.infer<typeof memorySettingsSchema>;
