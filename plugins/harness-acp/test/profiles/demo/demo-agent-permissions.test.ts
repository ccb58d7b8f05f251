import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type PermissionDecision, RunCancelled } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { DemoStage } from "../../support/demo-stage.js";
import { eventsOf, ofType, textOf, turnOf } from "../../support/runs.js";
import { startToolServer } from "../../support/tool-server.js";

const stage = new DemoStage();

describe("the demo agent, asking for permission", () => {
  it("calls a published tool: one call, one result, both with the tool's own name and input", async () => {
    await using tools = await startToolServer();
    const { agent, scope } = await stage.start({ servers: [tools.published] });
    const turn = turnOf({ prompt: 'call! lookup {"key":"k"}' });
    const events = await eventsOf(agent, turn);
    expect(tools.calls).toEqual([{ key: "k" }]);
    expect(turn.questions).toMatchObject([{ toolName: "lookup", server: "ambit", input: { key: "k" } }]);
    expect(ofType(events, "tool_call")).toMatchObject([{ name: "lookup", input: { key: "k" } }]);
    expect(ofType(events, "tool_result")).toMatchObject([{ output: "value of k" }]);
    await scope.close();
  });

  it("denies: nothing is executed, the result says so, and the turn continues", async () => {
    const { agent, scope } = await stage.start();
    const events = await eventsOf(
      agent,
      turnOf({ prompt: "run! touch made\nsay still here", answer: "deny" }),
    );
    expect(ofType(events, "tool_result")).toMatchObject([{ isError: true, denied: true }]);
    expect(ofType(events, "tool_call")).toMatchObject([{ name: "run", input: { command: "touch made" } }]);
    expect(textOf(events)).toBe("still here");
    await expect(readFile(join(stage.sandbox.workspace, "made"))).rejects.toThrow();
    await scope.close();
  });

  it("allows once only: the same question comes again", async () => {
    const { agent, scope } = await stage.start();
    const turn = turnOf({ prompt: "run! true\nrun! true" });
    await eventsOf(agent, turn);
    expect(turn.questions).toHaveLength(2);
    await scope.close();
  });

  it("parks: the turn pauses with its call open, and the agent accepts another prompt", async () => {
    const { agent, scope } = await stage.start();
    const turn = turnOf({ prompt: "run! touch made\nsay not reached", answer: "park" });
    const events = await eventsOf(agent, turn);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "paused" });
    expect(ofType(events, "tool_call")).toHaveLength(1);
    expect(ofType(events, "tool_result")).toHaveLength(0);
    expect(textOf(await eventsOf(agent, turnOf({ prompt: "say again" })))).toBe("again");
    await scope.close();
  });

  it("cancels: open calls are settled, and the agent keeps running", async () => {
    const { agent, scope } = await stage.start();
    const abort = new AbortController();
    const turn = turnOf({
      prompt: "run! sleep 100",
      signal: abort.signal,
      answer: () => {
        abort.abort(new RunCancelled("cancelled"));
        return new Promise<PermissionDecision>(() => {});
      },
    });
    const events = await eventsOf(agent, turn);
    expect(ofType(events, "tool_call")).toHaveLength(1);
    expect(ofType(events, "tool_result")).toMatchObject([{ isError: true }]);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "cancelled" });
    expect(textOf(await eventsOf(agent, turnOf({ prompt: "say again" })))).toBe("again");
    await scope.close();
  });
});
