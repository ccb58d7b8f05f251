import { describe, expect, it } from "vitest";
import { attacks } from "../src/attacks/catalogue.js";
import { startDecoys } from "../src/decoys/decoys.js";
import { boundaryOf } from "../src/executor/execute.js";
import { operatorControl } from "../src/index.js";
import { KitScope, silentLog } from "../src/stage/kit-scope.js";
import { liar } from "./liar.js";

describe("the control for an operator's own host of a backend that has none of its own", () => {
  it("never runs a bomb where nothing confines it", async () => {
    const scope = new KitScope();
    const decoys = await startDecoys();
    const spec = {
      id: "operator",
      boundary: boundaryOf({ resources: { memoryMb: 96 } }),
      required: ["resources.memory"],
      requiredPaths: [],
      onDecision: () => undefined,
      log: silentLog,
    } as const;
    const closed: string[] = [];
    const backend = {
      ...liar(),
      open: async () => {
        const sandbox = await liar().open(spec, scope);
        return Object.assign(Object.create(sandbox), {
          confinement: "unconfined",
          close: async () => {
            closed.push("closed");
            await sandbox.close();
          },
        });
      },
    };
    const [bomb] = attacks["resources.memory"];
    await expect(operatorControl(backend).open(bomb, spec, scope, decoys)).rejects.toThrow(
      "doesn't run bare",
    );
    expect(closed).toEqual(["closed"]);
    await scope.close();
    await decoys.close();
  });
});
