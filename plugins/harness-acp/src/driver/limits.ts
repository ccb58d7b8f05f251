import { z } from "zod";

/** The limits for every agent. docs/reliability.md is generated from these descriptions. */
export const driverLimitsSchema = z.strictObject({
  cancelMs: z.int().positive().max(600_000).default(4_000).meta({
    description:
      "Milliseconds to end a turn after `session/cancel`; after half of that time `$/cancel_request` is sent as well. Then it is killed.",
  }),
  closeMs: z.int().nonnegative().max(60_000).default(300).meta({
    description:
      "Milliseconds to store what it has and exit, for an agent that stores late; then it is killed.",
  }),
  listedMs: z.int().nonnegative().max(60_000).default(5_000).meta({
    description:
      "Milliseconds to ask for its tools before the first prompt, for an agent that doesn't wait for them itself.",
  }),
  lateMs: z.int().nonnegative().max(60_000).default(1_000).meta({
    description:
      "Milliseconds after its answer to a prompt in which an agent that isn't in order may still send the rest of that turn: a call without a result is waited for, and so is the next prompt.",
  }),
  messageCharacters: z
    .int()
    .min(65_536)
    .default(8_388_608)
    .meta({ description: "Characters of one message; a longer one fails the run." }),
  messageValues: z.int().min(1_000).default(50_000).meta({
    description:
      "Values of one message: lists, objects, keys, strings, numbers; more fail the run. Parsing 50,000 takes 5 to 20 ms.",
  }),
  heldCharacters: z.int().min(65_536).default(67_108_864).meta({
    description:
      "Characters of messages that haven't arrived completely, of all agents; past it the run with the longest fails.",
  }),
  bufferedCharacters: z.int().min(1_024).default(262_144).meta({
    description: "Characters of events that wait for a slow consumer; past it the agent's output isn't read.",
  }),
  openCalls: z
    .int()
    .positive()
    .max(100_000)
    .default(256)
    .meta({ description: "Tool calls without a result at one time; more fail the run." }),
  openCallCharacters: z.int().min(1_024).default(16_777_216).meta({
    description: "Characters of all of them together, at least 64 for each value; more fail the run.",
  }),
});
export type DriverLimits = Readonly<z.output<typeof driverLimitsSchema>>;

export const defaultDriverLimits: DriverLimits = driverLimitsSchema.parse({});
