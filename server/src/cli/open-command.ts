import type { ActorDescription } from "@ambit/core";
import { takeEnvironment } from "../configuration/environment.js";
import type { Overrides } from "../configuration/load.js";
import { type Ambit, type OpenAmbitOptions, openAmbit } from "../open.js";
import type { UnhandledErrors } from "../unhandled.js";
import type { Progress } from "./display/progress.js";
import { exitCodes } from "./exit-codes.js";

/** A command without clients ends with the first error that nothing handles, unless only a plugin's runs have to. */
const endsCommand: UnhandledErrors = {
  survives: false,
  end: (error) => {
    process.stderr.write(`ambit: ${error.stack ?? error.message}\n`);
    process.exit(exitCodes.runFailed);
  },
};

/**
 * Opens Ambit for a command: what its probes find is kept for the next one.
 * @param options in place of the command's usual ones.
 */
export function openForCommand(
  overrides: Overrides,
  options: Partial<OpenAmbitOptions> = {},
): Promise<Ambit> {
  return openAmbit({
    environment: options.environment ?? takeEnvironment(process.env),
    overrides,
    logLevel: "warn",
    keepsEvidence: true,
    unhandled: endsCommand,
    ...options,
  });
}

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
