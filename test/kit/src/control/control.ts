import type { Attack, Decoys } from "@ambit/attacks";
import type { Sandbox, SandboxSpec, Scope } from "@ambit/core/plugin";
import { BareSandbox } from "./bare-sandbox.js";
import { startOpenProxy } from "./open-proxy.js";
import { unprivilegedUser } from "./unprivileged-user.js";

/** Shows that an attack works if nothing stops it: only then does its failure prove something. */
export interface Control {
  /** What replaces the guard in the control, for tables: "a bare process". */
  readonly what: string;
  /** The removed part of the guard for this attack, if it isn't all of it: "pid namespace". */
  without?(attack: Attack): string;
  /**
   * Which attacks of a capability are made in one sandbox, opened once: those with the same word. Only for attacks that change
   * nothing for the next one when they work. Default: each has a sandbox of its own.
   */
  sharedBy?(attack: Attack): string | undefined;
  /** A place like the sandbox under test, without the mechanism that should stop this attack. */
  open(attack: Attack, spec: SandboxSpec, scope: Scope, decoys: Decoys): Promise<Sandbox>;
  /** A module whose default export makes a backend of that kind, for attacks that need a separate runner. */
  readonly runnerModule?: URL | ((attack: Attack) => URL);
}

/**
 * A bare process on this host, as an unprivileged user, with decoys only: for test machines. On an operator's host a
 * control is the same jail with one mechanism removed, if its backend provides that.
 */
export function bareControl(): Control {
  return {
    what: "a bare process",
    open: async ({ asRoot }, { secrets = [], log }, scope, { keys, folder, place }) => {
      const proxy = await startOpenProxy(place);
      scope.defer(() => proxy.close());
      const user = asRoot === true ? undefined : unprivilegedUser();
      // Nothing is hidden: the values are in place of the placeholders.
      const placeholders = Object.fromEntries(secrets.map(({ name, value }) => [name, value]));
      const store = secrets.length === 0 ? undefined : await keys?.carelessStore(folder.path);
      const env = { ...proxy.env, ...(store === undefined ? {} : { SSL_CERT_FILE: store }) };
      if (secrets.length > 0) log.debug({ secrets }, "opened");
      return BareSandbox.open({ user, confinement: "unconfined", env, placeholders });
    },
    runnerModule: new URL("../../dist/control/bare-backend.js", import.meta.url),
  };
}
