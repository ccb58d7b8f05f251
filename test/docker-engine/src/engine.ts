import { z } from "zod";

/** The OCI runtimes that tests ask for. */
export const runtimes = ["runc", "runsc"] as const;
export type Runtime = (typeof runtimes)[number];

export const engineSchema = z.strictObject({
  /** Path of the unix socket that its API answers on. */
  socket: z.string(),
  /** The default sandbox image, which the engine has. */
  image: z.string(),
  /** For the one bridge that a test may create, as `com.docker.network.bridge.name`: it is removed with the engine. */
  bridge: z.string(),
  /** Why a runtime doesn't run a container here; null where it does. */
  failures: z.record(z.enum(runtimes), z.string().nullable()),
});

/** What a test gets. */
export type DockerEngine = z.infer<typeof engineSchema>;
