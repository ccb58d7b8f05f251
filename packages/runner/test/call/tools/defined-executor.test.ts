import { defineExecutor } from "@ambit/core/plugin";
import type { ScriptedTurn } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import { createWorld } from "../../fakes/world.js";

const restricted = { sandboxPermission: { network: "off" } };
const tool = { kind: "clock", name: "now", permission: "allow" };

function worldWith(definition: Partial<Parameters<typeof defineExecutor>[0]> = {}) {
  const execute = async () => ({ status: "completed", output: "noon" }) as const;
  const clock = defineExecutor({ kind: "clock", site: "runner", execute, ...definition });
  return createWorld({
    executors: [clock],
    sandbox: { claims: ["network.deny", "process.contained", "environment.named-only"] },
    script: async function* ({ tools }: ScriptedTurn) {
      yield { type: "message", text: (await tools().call("now")).output };
      yield { type: "done", stopReason: "end_turn" };
    },
  });
}

describe("an executor made by defineExecutor", () => {
  it("runs if the request has no boundary", async () => {
    const { result } = await (await worldWith()).run({ customTools: [tool] });
    expect(result).toMatchObject({ ok: true, output: "noon" });
  });

  it("is refused under a boundary for each capability that it doesn't claim", async () => {
    const world = await worldWith();
    const { gaps } = await world.admit({ ...restricted, customTools: [tool] }).then(
      () => expect.unreachable("the run was admitted"),
      (error) => error,
    );
    expect(gaps).toEqual(
      ["network.deny", "process.contained", "environment.named-only"].map((capability) =>
        expect.objectContaining({ actor: "clock", subject: "now", capability }),
      ),
    );
  });

  it.each([
    ["touches nothing", { touches: () => [] }],
    ["acts with the caller", { site: "caller" }],
    ["acts only through the sandbox", { site: "sandbox" }],
  ] as const)("runs under a boundary where its author says that it %s", async (_what, definition) => {
    const { result } = await (await worldWith(definition)).run({ ...restricted, customTools: [tool] });
    expect(result).toMatchObject({ ok: true, output: "noon" });
  });
});
