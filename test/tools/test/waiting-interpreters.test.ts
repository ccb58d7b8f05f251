// needs: jail, pgrep
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { asking } from "./support/agents.js";
import { startPlatform } from "./support/platform.js";
import { runningBelow } from "./support/processes.js";
import { Stage } from "./support/stage.js";
import { callbackTool, pythonTool } from "./support/tools.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

const spy = readFileSync(fileURLToPath(new URL("./support/spy.py", import.meta.url)), "utf8");
/** Part of the bootstrap, which is an argument of each interpreter. */
const python = '"""Runs one code tool';
const first = pythonTool("first", "def main(): return 'done'");
it("an interpreter waits for the run's next call, and ends with the run although its session stays", async () => {
  const sessionId = "waiting-interpreters";
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await using platform = await startPlatform(async () => {
    await released;
    return "let go";
  });
  const run = await stage.begin({
    harness: "demo",
    ...asking("call first {}\ncall hold {}"),
    customTools: [first, callbackTool("hold")],
    toolCallback: { endpoint: platform.endpoint },
    sessionId,
  });
  await vi.waitFor(() => expect(platform.calls).toHaveLength(1), { timeout: 30_000 });
  // After the first call's result, a running interpreter is a waiting one.
  await vi.waitFor(() => expect(runningBelow(process.pid, python)).toBeGreaterThan(0), { timeout: 30_000 });
  release();
  expect(await run.result).toMatchObject({ ok: true, receipt: { confinement: "confined" } });
  expect(runningBelow(process.pid, python)).toBe(0);
  await stage.runner.endSession(sessionId);
});

it("an interpreter that got no call ends with the run too", async () => {
  const run = await stage.begin({ harness: "demo", ...asking("say hello"), customTools: [first] });
  expect(await run.result).toMatchObject({ ok: true });
  expect(run.of("tool_call")).toEqual([]);
  expect(runningBelow(process.pid, python)).toBe(0);
});

// The control is in the tests of isolation: a spy finds all of this if nothing is confined.
it("another tool's process can't read the input of an interpreter that waited", async () => {
  const secret = "secret-of-a-waiting-one";
  const victim = `
import os, time
def main():
    secret = os.environ["TOOL_SECRET"]
    open("victim-is-ready", "w").close()
    while not os.path.exists("spy-is-done"): time.sleep(0.01)
    return len(secret)
`;
  const input = JSON.stringify({ needles: [[...secret].reverse().join("")], runner: process.pid });
  const limit = { timeoutMs: 30_000 };
  const run = await stage.run({
    harness: "demo",
    ...asking(`call first {}\n& call victim {}\n& call spy ${input}`),
    customTools: [
      first,
      pythonTool("victim", victim, { env: { TOOL_SECRET: secret }, ...limit }),
      pythonTool("spy", spy, limit),
    ],
  });
  expect(await run.result).toMatchObject({ ok: true });
  expect(run.resultsOf("victim")).toMatchObject([{ output: String(secret.length) }]);
  const { found, looked } = JSON.parse(String(run.resultsOf("spy")[0]?.output));
  expect(found).toEqual({});
  expect(looked.processes).toBeGreaterThan(0);
});
