import { rmSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { attacks } from "../src/attacks/catalogue.js";
import { operatorControl, runAttacks } from "../src/attacks.js";
import { boundaryOf } from "../src/executor/execute.js";
import { KitScope, silentLog } from "../src/stage/kit-scope.js";
import makeBackend, { makeDataFolder } from "./backends/local.mjs";
import { liar } from "./liar.js";

const dataFolder = makeDataFolder();
afterAll(() => rmSync(dataFolder, { recursive: true, force: true, maxRetries: 5 }));

describe("the controls for an operator's own host", () => {
  it("prove a network boundary and a process limit, or leave them refused", {
    timeout: 120_000,
  }, async () => {
    const backend = makeBackend(dataFolder);
    const { capabilities, holds } = await runAttacks(backend, {
      control: operatorControl(backend),
      capabilities: ["network.deny", "resources.processes"],
    });
    expect(capabilities.map(({ standing }) => standing)).toEqual([
      expect.stringMatching(/^(proven|refused)$/),
      expect.stringMatching(/^(proven|refused)$/),
    ]);
    expect(holds).toBe(true);
  });

  it("never run a bomb where nothing confines it", async () => {
    const scope = new KitScope();
    const spec = {
      id: "operator",
      boundary: boundaryOf({ resources: { memoryMb: 96 } }),
      required: ["resources.memory"],
      runtimes: [],
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
    await expect(operatorControl(backend).open(bomb, spec, scope)).rejects.toThrow("doesn't run bare");
    expect(closed).toEqual(["closed"]);
    await scope.close();
  });
});
