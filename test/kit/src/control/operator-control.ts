import { normaliseBoundary } from "@ambit/core";
import { domainOf, type SandboxBackend } from "@ambit/core/plugin";
import { BareSandbox } from "./bare-sandbox.js";
import type { Control } from "./control.js";
import { startOpenProxy } from "./open-proxy.js";
import { unprivilegedUser } from "./unprivileged-user.js";

/**
 * For an operator's own host, where nothing destructive runs bare: what uses up memory, processors, processes or disk
 * runs in the same jail without the limit, and everything else as a plain unprivileged process that reaches for
 * decoys. Nothing runs as root: an attack that needs it is said to prove nothing here.
 */
export function operatorControl(backend: SandboxBackend): Control {
  const { boundary } = normaliseBoundary({ enforcement: "strict" });
  return {
    what: "a bare process that may reach decoys only; for resources, the same jail without the limit",
    open: async ({ capability }, spec, scope) => {
      if (domainOf(capability) === "resources") {
        const sandbox = await backend.open({ ...spec, boundary, required: [] }, scope);
        if (sandbox.confinement === "confined") return sandbox;
        await sandbox.close();
        throw new Error("without a limit nothing confines it here, and it doesn't run bare");
      }
      const proxy = await startOpenProxy();
      scope.defer(() => proxy.close());
      const user = unprivilegedUser();
      return BareSandbox.open({ user, confinement: "unconfined", env: proxy.env });
    },
    runnerModule: new URL("../../dist/control/bare-backend.js", import.meta.url),
  };
}
