import { dialProgram } from "../decoys/near-programs.js";
import type { Attack } from "./attack.js";
import { programAttack } from "./program-attack.js";

/**
 * To reach what a sandbox of the same backend reaches without limits, which is the control. @param capability whose boundary
 * doesn't list it.
 */
export function nearAttack(capability: "network.deny" | "network.allow-cidr" | "network.allow-host"): Attack {
  return {
    ...programAttack({
      id: `${capability}/near`,
      title: "reach a server that a sandbox of this backend reaches without limits",
      parameters: async ({ near }) => {
        const targets = (await near?.()) ?? "nothing near is known";
        return typeof targets === "string" ? targets : { targets };
      },
      program: dialProgram,
    }),
    inOpenSandbox: true,
  };
}
