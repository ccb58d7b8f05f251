import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { emptyFolder, type Server, serve } from "../support/ambit.js";

/** With the default plugins, and other settings of the configuration. */
export async function servePreviews(preview: object, more: object = {}): Promise<Server> {
  const file = join(await emptyFolder(), "ambit.config.json");
  const probes = { keepAcrossRestarts: true };
  writeFileSync(file, JSON.stringify({ extends: "defaults", server: { preview }, probes, ...more }));
  return serve({}, ["--config", file]);
}
