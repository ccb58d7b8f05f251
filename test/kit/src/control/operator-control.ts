import { normaliseBoundary } from "@ambit/core";
import { domainOf, type SandboxBackend } from "@ambit/core/plugin";
import { bareControl, type Control } from "./control.js";

/**
 * For an operator's own host, where `ambit verify` uses it: nothing destructive runs unconfined, and nothing
 * as root. Attacks that use up memory, processors, processes or disk run in the same sandbox without the limit, and all
 * others as a plain unprivileged process that reaches for decoys.
 */
export function operatorControl(backend: SandboxBackend): Control {
  const { boundary } = normaliseBoundary({ enforcement: "strict" });
  const bare = bareControl();
  return {
    ...bare,
    what: "a bare process that may reach decoys only; for resources, the same jail without the limit",
    open: async (attack, spec, scope, decoys) => {
      if (domainOf(attack.capability) !== "resources") {
        return bare.open({ ...attack, asRoot: false }, spec, scope, decoys);
      }
      const sandbox = await backend.open({ ...spec, boundary, required: [] }, scope);
      if (sandbox.confinement === "confined") return sandbox;
      await sandbox.close();
      throw new Error("without a limit nothing confines it here, and it doesn't run unconfined");
    },
  };
}
