import { dialProgram } from "../decoys/near-programs.js";
import type { Attack, Stage } from "./attack.js";
import { programAttack } from "./program-attack.js";

type NetworkCapability = "network.deny" | "network.allow-cidr" | "network.allow-host";

/** The targets of the program, or why there are none. */
async function nearTargets({ near }: Stage): Promise<object | string> {
  const targets = (await near?.()) ?? "nothing near is known";
  return typeof targets === "string" ? targets : { targets };
}

/**
 * To reach what a sandbox of the same backend reaches without limits, which is the control. @param capability whose boundary
 * doesn't list it.
 */
export function nearAttack(capability: NetworkCapability): Attack {
  return {
    ...programAttack({
      id: `${capability}/near`,
      title: "reach a server that a sandbox of this backend reaches without limits",
      parameters: nearTargets,
      program: dialProgram,
    }),
    inOpenSandbox: true,
  };
}

/** The same in the first moment of a sandbox: a policy may be enforced only after it has been handed over. */
export function nearAtOnceAttack(capability: NetworkCapability): Attack {
  return {
    ...programAttack({
      id: `${capability}/near-at-once`,
      title: "reach such a server in the first moment of a sandbox",
      parameters: nearTargets,
      inAnother: () => ({}),
      program: dialProgram,
    }),
    inOpenSandbox: true,
  };
}
