import { isAbsolute } from "node:path";
import { z } from "zod";
import { profileIds } from "./profiles/index.js";

const profileIdSchema = z.enum(profileIds);

const overrideSchema = z.strictObject({
  /** Absolute path of the agent's program or script. Default: its npm package, where that is installed. */
  command: z.string().refine(isAbsolute, "must be an absolute path").optional(),
  /** The program in a sandbox with an image of its own: a name on the image's `PATH`, or a path. Default: its usual name. */
  commandInImage: z.string().min(1).optional(),
  /** Variables that this agent gets in every run. A key among them is visible inside, and the receipt says so. */
  env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string()).default({}),
});

export const configSchema = z.strictObject({
  /** The agents that are offered. */
  profiles: z.array(profileIdSchema).min(1).default(["demo", "gemini", "codex"]),
  /** The folder whose `node_modules` holds the agents. Default: the working directory. */
  folder: z.string().refine(isAbsolute, "must be an absolute path").optional(),
  /** What is particular to one agent, by its profile. */
  overrides: z.partialRecord(profileIdSchema, overrideSchema).default({}),
  /** What every agent is granted. */
  limits: z
    .strictObject({
      /** Milliseconds to end a turn after being told to; then it is killed. */
      cancelMs: z.int().positive().max(600_000).default(4_000),
      /** Milliseconds to store what it has and leave, for an agent that stores late; then it is killed. */
      closeMs: z.int().nonnegative().max(60_000).default(300),
      /** Characters of one message; a longer one fails the run. */
      messageCharacters: z.int().min(65_536).default(33_554_432),
      /** Characters of events that wait for a slow consumer; past it the agent's output isn't read. */
      bufferedCharacters: z.int().min(1_024).default(262_144),
    })
    .prefault({}),
});
