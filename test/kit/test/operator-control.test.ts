import { attacks, startDecoys } from "@ambit/attacks";
import { describe, expect, it } from "vitest";
import { boundaryOf } from "../src/executor/execute.js";
import { operatorControl } from "../src/index.js";
import { KitScope, silentLog } from "../src/stage/kit-scope.js";
import { liar } from "./liar.js";

describe("the operator's control for a backend without a control", () => {
  it("never runs a resource attack unconfined", async () => {
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
      "doesn't run unconfined",
    );
    expect(closed).toEqual(["closed"]);
    await scope.close();
    await decoys.close();
  });
});
