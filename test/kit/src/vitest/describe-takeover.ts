import type { Finding, SandboxBackend } from "@ambit/core/plugin";
import { afterAll, describe, expect, it } from "vitest";
import type { SessionShape } from "../contract/contract.js";
import { takeoverChecks, takeoverOf } from "../contract/takeover-checks.js";
import { bareControl } from "../control/control.js";
import { judgeCapability } from "../judge/judge-capability.js";
import { KitScope } from "../stage/kit-scope.js";

export interface TakeoverOptions {
  /** Makes the backend as a runner on another host has it: with a data folder of its own. */
  readonly makeOther: () => SandboxBackend;
  /** A plain module (`.mjs`) whose default export makes the backend once more, for a process that is killed. */
  readonly runnerModule: URL;
}

const checkMs = 120_000;

/** The requirements on a backend whose sandboxes another runner can take over. */
export function describeTakeover(
  backend: SandboxBackend,
  [loose, tight = loose]: readonly [SessionShape, SessionShape?],
  findings: readonly Finding[],
  options: TakeoverOptions | undefined,
): void {
  describe("sandboxes that another runner takes over", () => {
    if (options === undefined) {
      it("are tested", () => {
        expect.fail(`${backend.name} offers takeover: pass the kit's option takeover, so that it is tested`);
      });
      return;
    }
    const { makeOther, runnerModule } = options;
    const other = makeOther();
    afterAll(() => other.close?.(AbortSignal.timeout(checkMs)));

    for (const { title, check } of takeoverChecks) {
      it(title, { timeout: checkMs }, async () => {
        const scope = new KitScope();
        try {
          await check({ backend, other, runnerModule, tight, loose, scope });
        } finally {
          await scope.close();
        }
      });
    }

    const isClosed = findings.some(({ capability, proven }) => capability === "network.deny" && proven);
    if (!isClosed) return;
    it("keep their network closed", { timeout: checkMs }, async () => {
      const only = ["network.deny/tcp"];
      const judging = { control: bareControl(), only };
      const report = await judgeCapability(relayed(backend, other), findings, "network.deny", judging);
      expect(report.attacks.map(({ id, verdict }) => [id, verdict])).toEqual([[only[0], "proven"]]);
    });
  });
}

/** A backend each of whose sandboxes was opened by one runner, and is another's by now. */
function relayed(first: SandboxBackend, second: SandboxBackend): SandboxBackend {
  return {
    name: first.name,
    site: first.site,
    claims: first.claims,
    touches: (boundary) => first.touches(boundary),
    gaps: (boundary) => first.gaps(boundary),
    probe: (signal) => first.probe(signal),
    open: async (spec, scope) => {
      const opened = await first.open({ ...spec, fence: 1 }, scope);
      scope.defer(() => opened.close());
      return takeoverOf(second).takeOver({ ...spec, fence: 2 }, opened.handover ?? "", scope);
    },
  };
}
