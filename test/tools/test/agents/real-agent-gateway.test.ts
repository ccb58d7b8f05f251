// needs: jail
import { expect, it } from "vitest";
import { asking, startAgent } from "../support/agents.js";
import { Stage } from "../support/stage.js";
import { pythonTool } from "../support/tools.js";

it("Codex, confined, reaches a listed gateway on the host's loopback, and the run's tools", {
  timeout: 90_000,
}, async () => {
  const [agent, stage] = await Promise.all([startAgent("codex"), Stage.open()]);
  try {
    const gateway = new URL(agent.model?.url ?? "").host;
    const calls = [1, 2].map((number) => ({ tool: "twice", input: { number } }));
    const run = await stage.run({
      ...agent.request,
      ...asking(agent.prompt(...calls)),
      customTools: [pythonTool("twice", "def main(number): return number * 2")],
      sandboxPermission: { network: { allowlist: [gateway] }, filesystem: "workspace" },
    });
    const result = await run.result;
    expect(result).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(run.of("tool_result").map(({ output }) => output)).toEqual(["2", "4"]);
    expect(result.receipt).toMatchObject({ confinement: "confined" });
    expect(run.of("boundary_decision")).toContainEqual(
      expect.objectContaining({ target: gateway, allowed: true }),
    );
  } finally {
    await Promise.all([stage.close(), agent.close()]);
  }
});
