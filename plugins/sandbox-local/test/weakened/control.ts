import { bareControl, type Control } from "@ambit/testkit";
import { decoyList, standIns } from "./decoys-only.ts";
import { type LocalSetup, WeakenedSandboxes, withoutFor } from "./jails/index.ts";
import { runnerModule } from "./runner.ts";

/** The local sandbox's own jail without the mechanism that stops the attack. */
export function control(setup: LocalSetup): Control {
  const weakened = new WeakenedSandboxes(setup);
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
      return runnerModule(setup.config, without === "bare" ? [] : without);
    },
  };
}
