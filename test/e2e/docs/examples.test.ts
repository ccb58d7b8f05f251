import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentEvent, RunResult } from "@ambit/core";
import { describe, expect, it, type TestContext } from "vitest";
import { ambit, repository, serve } from "../support/ambit.js";
import { callbackServer } from "../support/callback-server.js";

const folder = join(repository, "examples");
const files = readdirSync(folder).filter((name) => name.endsWith(".json"));

/** Runs an example. If this host can't guarantee its boundary, the test is skipped with the reason. */
async function run(context: TestContext, name: string, more: object = {}): Promise<RunResult> {
  const request = JSON.parse(await readFile(join(folder, name), "utf8"));
  const { code, stdout } = await ambit(["run", "-"], { input: { ...request, ...more } });
  const result: RunResult = JSON.parse(stdout);
  const lacking = result.failure?.gaps?.find(({ actor }) => actor === "local");
  if (lacking !== undefined) context.skip(`host: ${lacking.capability}: ${lacking.reason}`);
  expect(code).toBe(result.ok ? 0 : 3);
  return result;
}

function outcomes(result: RunResult): string[] {
  return result.events
    .filter((event): event is Extract<AgentEvent, { type: "tool_result" }> => event.type === "tool_result")
    .map(({ output, isError }) => `${isError === true ? "failed" : "done"}: ${JSON.stringify(output)}`);
}

describe("the examples", () => {
  it("are valid requests", async () => {
    const { post } = await serve();
    for (const name of files) {
      const answer = await (await post("/plan", await readFile(join(folder, name), "utf8"))).text();
      expect.soft(answer, name).not.toContain('"issues"');
    }
  });

  it("demo.json runs to its end without other programs", async (context) => {
    const result = await run(context, "demo.json");
    expect(result.stopReason).toBe("end_turn");
    expect(result.output).toMatch(/no network, no model, no key\.$/);
    expect(outcomes(result).every((outcome) => outcome.startsWith("done"))).toBe(true);
  });

  it("network-off.json shows what a boundary refuses and allows", async (context) => {
    const result = await run(context, "network-off.json");
    const [fetched, touched, wrote] = outcomes(result);
    // Node 26 returns the proxy's response, with its reason; Node 24 opens a tunnel, and names the proxy's status.
    expect(fetched).toMatch(/403[\s\S]*(boundary|Ambit|Tunneling)/);
    expect(touched).toMatch(/^failed: .*Read-only file system/);
    expect(wrote).toMatch(/^done: /);
    expect(result.receipt).toMatchObject({ confinement: "confined", decisions: { allowed: 0, refused: 1 } });
    expect(result.receipt?.guarantees.map(({ capability }) => capability)).toContain("network.deny");
  });

  it("allowlist.json records what it refuses", async (context) => {
    const result = await run(context, "allowlist.json");
    expect(result.events).toContainEqual(
      expect.objectContaining({
        type: "boundary_decision",
        target: "unlisted.example.net:80",
        allowed: false,
      }),
    );
  });

  it("callback.json reaches the listed platform, and only from the runner", async (context) => {
    const platform = await callbackServer(() => ({ sky: "rain" }));
    const result = await run(context, "callback.json", {
      toolCallback: { endpoint: platform.endpoint, authorization: "Access my-token" },
      sandboxPermission: { network: { allowlist: [new URL(platform.endpoint).host] } },
    });
    expect(platform.calls).toEqual([
      { name: "tools__weather", arguments: { city: "Bern" }, authorization: "Access my-token" },
    ]);
    expect(outcomes(result)).toEqual([expect.stringMatching(/^done: .*rain/)]);
  });

  it("callback-refused.json is refused with a fix", async (context) => {
    const { failure } = await run(context, "callback-refused.json");
    expect(failure?.gaps).toMatchObject([
      { actor: "callback", capability: "network.deny", subject: "weather" },
    ]);
    expect(failure?.gaps?.[0]?.fix).toContain("127.0.0.1:8767");
  });

  it("code-tool.json runs code inside", async (context) => {
    const result = await run(context, "code-tool.json");
    expect(outcomes(result)).toEqual([expect.stringContaining("42")]);
  });

  it("ask.json denies by rule, and pauses otherwise", async (context) => {
    const result = await run(context, "ask.json");
    expect(result).toMatchObject({ ok: true, stopReason: "paused" });
    expect(result.events).toContainEqual(expect.objectContaining({ type: "tool_result", denied: true }));
    expect(result.events).toContainEqual(
      expect.objectContaining({ type: "interaction_request", kind: "user_approval" }),
    );
    expect(result.output).not.toContain("You won't read this");
  });
});
