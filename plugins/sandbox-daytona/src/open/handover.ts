import { SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";
import { mountedSecretsSchema } from "../secrets/organisation-secrets.js";

const handoverSchema = z.strictObject({
  /** The platform's id of the sandbox. */
  machine: z.string().min(1),
  secrets: mountedSecretsSchema.default({ ids: [], mounts: {}, placeholders: {} }),
  bridge: z.strictObject({ key: z.string(), epoch: z.string(), copied: z.array(z.string()).readonly() }),
});
/** What another runner needs to take the sandbox over. */
export type Handover = z.output<typeof handoverSchema>;

export function writeHandover(handover: Handover): string {
  return JSON.stringify(handover);
}

/** @throws SandboxFailed for data of another version. */
export function readHandover(text: string): Handover {
  const read = handoverSchema.safeParse(JSON.parse(text));
  if (read.success) return read.data;
  throw new SandboxFailed("Another version of sandbox-daytona opened the session's sandbox", {
    cause: read.error,
    concerns: "session",
  });
}
