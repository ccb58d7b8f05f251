import { says } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import { createWorld } from "../../fakes/world.js";

const ownTools = { run_command: "shell", write_file: "edit", read_file: "read" } as const;

/** A run of an agent that never asks. */
async function run(unaskedTools: "refuse" | "boundary", permissions?: object) {
  const harness = { ownTools, supportsPermissionRequests: false };
  const world = await createWorld({ harness, script: says("x"), rules: { unaskedTools } });
  return (await world.run(permissions === undefined ? {} : { permissions })).result;
}

describe("an agent that uses its own tools unasked", () => {
  it("is refused with a default that asks", async () => {
    await expect(run("refuse")).rejects.toMatchObject({ issues: [{ path: "permissions.default" }] });
  });

  it("runs where the operator lets the boundary stand for them, which the result says", async () => {
    const result = await run("boundary");
    expect(result.ok).toBe(true);
    expect(result.warnings).toMatchObject([{ path: "permissions.default" }]);
    expect(result.receipt?.unaskedTools).toEqual(["shell", "edit"]);
  });

  it.each([[{ default: "deny" }], [{ default: "ask", rules: [{ pattern: "shell", permission: "deny" }] }]])(
    "is refused all the same with %j",
    async (permissions) => {
      await expect(run("boundary", permissions)).rejects.toMatchObject({ code: "request_invalid" });
    },
  );

  it("needs no warning for what the request allows", async () => {
    const result = await run("boundary", { default: "allow" });
    expect([result.warnings, result.receipt?.unaskedTools]).toEqual([undefined, undefined]);
  });
});
