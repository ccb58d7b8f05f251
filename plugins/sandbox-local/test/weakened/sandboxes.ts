import { chmod } from "node:fs/promises";
import { configSchema } from "../../dist/config.js";
import { temporaryFolder } from "../support/specs.js";
import { WeakenedSandboxes } from "./jails/index.ts";

/** Jails that can lack a mechanism, in a data folder of their own that is removed after the test. */
export async function weakenedSandboxes(): Promise<WeakenedSandboxes> {
  const dataFolder = await temporaryFolder();
  // A session's own user has to reach it.
  await chmod(dataFolder, 0o711);
  return new WeakenedSandboxes({ config: configSchema.parse({ dataFolder }), dataFolder });
}
