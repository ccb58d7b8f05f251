import { ChangingNames } from "@ambit/attacks";
import { capabilities, domains, type Sandbox, type SandboxBackend } from "@ambit/core/plugin";
import { BareSandbox } from "../src/control/bare-sandbox.js";
import { startOpenProxy } from "../src/control/open-proxy.js";
import { unprivilegedUser } from "../src/control/unprivileged-user.js";

/** Claims everything, reports it as proven, and enforces nothing: the kit must detect that for every capability. */
export function liar({ place } = new ChangingNames()): SandboxBackend {
  return {
    name: "liar",
    site: "sandbox",
    claims: capabilities,
    touches: () => domains,
    gaps: () => [],
    probe: () =>
      Promise.resolve(
        capabilities.map((capability) => ({
          capability,
          proven: true,
          how: "it trusts itself",
        })),
      ),
    open: async (_spec, scope): Promise<Sandbox> => {
      const proxy = await startOpenProxy(place);
      scope.defer(() => proxy.close());
      return BareSandbox.open({ user: unprivilegedUser(), confinement: "confined", env: proxy.env });
    },
  };
}
