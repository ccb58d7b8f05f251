import type { Sandbox, SandboxBackend, SandboxSpec } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { shapesOf } from "../src/contract/contract.js";
import { takeoverChecks } from "../src/contract/takeover-checks.js";
import { BareSandbox } from "../src/control/bare-sandbox.js";
import { KitScope } from "../src/stage/kit-scope.js";
import { liar } from "./liar.js";

type Guard = (opened: SandboxSpec, asked: SandboxSpec) => boolean;

/** What a takeover must compare, one after the other, and what the kit says where that is the first one missing. */
const guards: readonly (readonly [Guard | undefined, missing: string])[] = [
  [undefined, "its fence is no higher"],
  [(opened, asked) => (asked.fence ?? 0) > (opened.fence ?? 0), "its id is another"],
  [(opened, asked) => asked.id === opened.id, "without a boundary is taken over"],
  [(opened, asked) => asked.boundary.network.mode === opened.boundary.network.mode, "still starts processes"],
];

/** Hands the same sandbox to whoever asks, unless one of the guards refuses. */
function careless(guarding: readonly Guard[]): SandboxBackend {
  const opened = new Map<string, { readonly spec: SandboxSpec; readonly sandbox: Sandbox }>();
  return {
    ...liar(),
    open: async (spec) => {
      const sandbox = await BareSandbox.open({ user: undefined, confinement: "confined", env: {} });
      opened.set(spec.id, { spec, sandbox });
      return Object.assign(sandbox, { handover: spec.id, leave: async () => {} });
    },
    takeover: {
      takeOver: async (asked, handover) => {
        const found = opened.get(handover);
        if (found === undefined || !guarding.every((guard) => guard(found.spec, asked)))
          throw new Error("refused");
        return found.sandbox;
      },
      discard: async () => {},
    },
  };
}

describe("the contract of a takeover", () => {
  const proven = (["network.deny"] as const).map(
    (capability) => ({ capability, proven: true, how: "" }) as const,
  );
  const [loose, tight] = shapesOf(proven);
  const [, live] = takeoverChecks;
  if (loose === undefined || tight === undefined || live === undefined)
    throw new Error("the checks are missing");

  it.for(guards.map(([, missing], index) => [missing, index] as const))(
    "notices: %s",
    async ([missing, index]) => {
      const guarding = guards.slice(0, index + 1).flatMap(([guard]) => guard ?? []);
      const backend = careless(guarding);
      const scope = new KitScope();
      const runnerModule = new URL("file:///unused.mjs");
      const checked = live.check({ backend, other: backend, runnerModule, loose, tight, scope });
      await expect(checked).rejects.toThrow(missing);
      await scope.close();
    },
  );
});
