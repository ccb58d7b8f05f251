import type { SandboxBackend } from "@ambit/core/plugin";
import { bareControl, type Control } from "@ambit/testkit";
import { decoyList, standIns } from "./decoys-only.js";
import { runnerModule } from "./runner.js";
import { WeakenedSandboxes, withoutFor } from "./weakened/index.js";

/** The local sandbox's own jail without the mechanism that stops the attack. Undefined for another backend. */
export function control(backend: SandboxBackend): Control | undefined {
  const weakened = WeakenedSandboxes.of(backend);
  if (weakened === undefined) return undefined;
  const bare = bareControl();
  return {
    what: "the same jail without the mechanism named for each attack",
    without: (attack) => {
      const without = withoutFor(attack);
      return without === "bare" ? "the whole jail" : without.join(", ");
    },
    open: (attack, spec, scope, decoys) => {
      const without = withoutFor(attack);
      // Never as root: an attack that needs root is reported as impossible here.
      if (without === "bare") return bare.open({ ...attack, asRoot: false }, spec, scope, decoys);
      return weakened.open(spec, without, standIns(attack, decoys), decoyList(decoys));
    },
    runnerModule: (attack) => {
      const without = withoutFor(attack);
      return runnerModule(weakened.config, without === "bare" ? [] : without);
    },
    guardedRunnerModule: runnerModule(weakened.config, []),
  };
}
