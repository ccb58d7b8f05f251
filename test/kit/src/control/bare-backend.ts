import { domains, type Sandbox, type SandboxBackend } from "@ambit/core/plugin";
import { BareSandbox } from "./bare-sandbox.js";
import { unprivilegedUser } from "./unprivileged-user.js";

/** The bare control as a backend that claims nothing, for a runner in a separate process. */
export default function bareBackend(): SandboxBackend {
  return {
    name: "bare",
    site: "sandbox",
    claims: [],
    touches: () => domains,
    gaps: () => [],
    probe: () => Promise.resolve([]),
    open: (): Promise<Sandbox> =>
      BareSandbox.open({ user: unprivilegedUser(), confinement: "unconfined", env: {} }),
  };
}
