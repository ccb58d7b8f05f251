import { z } from "zod";

export const configSchema = z.strictObject({
  /** Programs looked up in the sandbox, in `path` or its image's own; an absolute path is used as it is. */
  interpreters: z
    .strictObject({ python: z.string().min(1).default("python3"), node: z.string().min(1).default("node") })
    .prefault({}),
  /** `PATH` of a tool's process, where the sandbox shows the runner's programs. The folder of the runner's own node is added last. */
  path: z.string().min(1).default("/usr/local/bin:/usr/bin:/bin"),
  /** Bytes of a returned value, as JSON; a longer one is a failure. Default 4 MiB. */
  maxResultBytes: z
    .int()
    .positive()
    .default(4 * 1024 * 1024),
  /** Characters of what a tool printed that are given with its failure. */
  maxPrintedCharacters: z.int().nonnegative().default(2_000),
  /** Whether one interpreter of each runtime that a run has tools for waits in its own jail for the next call. */
  prewarm: z.boolean().default(true),
});
export type CodeConfig = z.output<typeof configSchema>;
