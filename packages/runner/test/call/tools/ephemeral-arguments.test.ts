import { done, type ScriptedTurn } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import { createWorld } from "../../fakes/world.js";

const inputSchema = {
  type: "object",
  required: ["city", "description"],
  additionalProperties: false,
  properties: { city: { type: "string" }, description: { type: "string" } },
};

/** Whether a call with these arguments is executed. */
async function isExecuted(given: Readonly<Record<string, unknown>>, ephemeralArgs?: string[]) {
  const world = await createWorld({
    script: async function* ({ tools }: ScriptedTurn) {
      await tools().call("weather", given);
      yield done;
    },
  });
  const tool = { name: "weather", callRef: "ref", permission: "allow", inputSchema };
  await world.run({ customTools: [{ ...tool, ...(ephemeralArgs === undefined ? {} : { ephemeralArgs }) }] });
  await world.runner.drain(0);
  return world.callback.calls.length === 1;
}

describe("arguments for the user alone", () => {
  it.each([
    ["left out", { city: "Bern" }],
    ["of another type", { city: "Bern", description: 7 }],
    ["unknown to the schema", { city: "Bern", reason: "why" }],
  ])("are no reason to refuse a call: %s", async (_what, given) => {
    expect(await isExecuted(given, ["description", "reason"])).toBe(true);
    expect(await isExecuted(given)).toBe(false);
  });

  it("the others are checked all the same", async () => {
    expect(await isExecuted({ description: "why" }, ["description"])).toBe(false);
  });
});
