import { existsSync } from "node:fs";
import type { Need } from "../goal.js";
import { openBackend } from "../subjects/confined.js";

/** `/proc` tells of CPU time, memory and children. */
export const linux: Need = {
  missing: async () => (process.platform === "linux" ? undefined : "it reads /proc, which only Linux has"),
};

let confinementMissing: Promise<string | undefined> | undefined;

/** This host confines processes: seen by opening a sandbox that does. */
export const confinement: Need = {
  missing: () => {
    confinementMissing ??= openBackend({ network: "own", limited: false })
      .then(async ({ close }) => {
        await close();
        return undefined;
      })
      .catch(
        (error: unknown) => `this host can't confine: ${error instanceof Error ? error.message : error}`,
      );
    return confinementMissing;
  },
};

/** Not what stands on a PATH: a version manager's shim takes eight times as long as the interpreter. */
export const systemPython = "/usr/bin/python3";

export const python: Need = {
  missing: async () => (existsSync(systemPython) ? undefined : `there is no ${systemPython}`),
};
