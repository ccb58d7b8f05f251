import type { UnhandledErrors } from "../unhandled.js";
import { exitCodes } from "./exit-codes.js";

/** A command that serves nobody else ends with the first error that nothing handles, unless only a plugin's runs have to. */
export const endsCommand: UnhandledErrors = {
  survives: false,
  end: (error) => {
    process.stderr.write(`ambit: ${error.stack ?? error.message}\n`);
    process.exit(exitCodes.runFailed);
  },
};
