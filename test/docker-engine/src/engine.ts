import { z } from "zod";

/** The OCI runtimes that tests ask for. */
export const runtimes = ["runc", "runsc"] as const;
export type Runtime = (typeof runtimes)[number];

export const engineSchema = z.strictObject({
  /** Path of the unix socket that its API answers on. */
  socket: z.string(),
  /** The default sandbox image, which the engine has. */
  image: z.string(),
  /**
   * Names for the bridges that tests may create, as `com.docker.network.bridge.name`: one for sandboxes without limits, one
   * for Compose. They are removed with the engine.
   */
  bridges: z.object({ sandboxes: z.string(), compose: z.string() }),
  /** Why a runtime doesn't run a container here; null where it does. */
  failures: z.record(z.enum(runtimes), z.string().nullable()),
});

/** What a test gets. */
export type DockerEngine = z.infer<typeof engineSchema>;
