import { z } from "zod";

/** A server in the sandbox that gets a URL on the runner. */
export const portSchema = z.strictObject({
  port: z.int().min(1_024).max(65_535).meta({
    description:
      "The TCP port where a program of the run will listen, on the sandbox's own loopback or on every address of it; 1024 or higher.",
  }),
  name: z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/, {
      error: "must be 1 to 32 of a-z, 0-9 and -, and begin and end with a letter or digit",
    })
    .meta({ description: "Names it in the event `preview`: 1 to 32 of `a-z 0-9 -`. Unique in a request." }),
});
export type Port = z.infer<typeof portSchema>;
