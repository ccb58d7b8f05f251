import { describe, it } from "vitest";
import { observerChecks } from "../observer/checks.js";
import type { ObserverRig } from "../observer/observer-rig.js";

/**
 * The requirements on an observer, as a suite: it disturbs no run, and keeps no credential.
 *
 * @param makeRig makes an observer, a separate one for each test, with a way to read what it has written.
 */
export function describeObserver(name: string, makeRig: () => Promise<ObserverRig>): void {
  describe(`observer ${name}`, () => {
    for (const { title, check } of observerChecks) {
      it(title, async () => {
        const rig = await makeRig();
        try {
          await check(rig);
        } finally {
          await rig.close();
        }
      });
    }
  });
}
