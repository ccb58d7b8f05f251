import type { ActorDescription } from "@ambit/core";
import type { Ambit } from "../../open.js";
import type { Progress } from "../display/progress.js";

/** Probes what isn't proven yet, shows which probes are under way, and keeps what was found for the next command. */
export async function probeAll(
  { registry, evidence }: Pick<Ambit, "registry" | "evidence">,
  progress: Progress,
): Promise<readonly ActorDescription[]> {
  const actors = await registry.describe((waiting) => {
    if (waiting.length > 0) progress.step(`probing what this host guarantees: ${waiting.join(", ")}`);
  });
  await evidence?.keep(registry);
  return actors;
}
