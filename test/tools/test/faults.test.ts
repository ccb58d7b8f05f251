// needs: jail
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asking } from "./support/agents.js";
import { startPlatform } from "./support/platform.js";
import { running, sleepMarker } from "./support/processes.js";
import { Stage } from "./support/stage.js";
import { callbackTool, nodeTool, pythonTool } from "./support/tools.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

/** In one session, so that the agent starts once; with a low limit of processes against fork bombs. */
function requestWith(prompt: string, tools: readonly object[], more: object = {}): object {
  const sandboxPermission = { resources: { processes: 60 } };
  return { harness: "demo", sandboxPermission, ...asking(prompt), customTools: tools, ...more };
}

describe("destructive code of a tool", () => {
  const sleeping = (marker: string) => `import subprocess\nsubprocess.Popen(["sleep", "${marker}"])\n`;
  const untilTimeout = { timeoutMs: 2_000 };
  it.each([
    [
      "a fork bomb that gets an error at the limit",
      "def main():\n  while True: subprocess.Popen(['sleep', '600'])",
      {},
      /Resource temporarily unavailable/,
    ],
    [
      "a fork bomb that doesn't care",
      "import os\ndef main():\n  while True:\n    try: os.fork()\n    except OSError: pass",
      untilTimeout,
      /timed out after 2000ms/,
    ],
    ["an infinite loop", "def main():\n  while True: pass", untilTimeout, /timed out after 2000ms/],
    ["10 MB of result", "def main(): return 'x' * 10_000_000", {}, /more than 4194304 bytes/],
    ["10 MB of prints", "def main():\n  print('x' * 10_000_000)\n  return 'fine'", {}, /^fine$/],
    [
      "10 MB of prints and a failure",
      "def main():\n  print('x' * 10_000_000)\n  raise ValueError('no')",
      {},
      /ValueError: no\nIt printed:\nx{1,2000}$/,
    ],
    [
      "a child that detaches",
      "def main():\n  subprocess.Popen(['setsid', 'sleep', '600'])\n  return 'left it there'",
      {},
      /^left it there$/,
    ],
    ["a signal to itself", "import os\ndef main(): os.kill(os.getpid(), 9)", {}, /SIGKILL/],
    ["leaving without a result", "import os\ndef main(): os._exit(7)", {}, /exited 7/],
  ])("%s", { timeout: 30_000 }, async (_what, code, fields, expected) => {
    const marker = sleepMarker();
    const tool = pythonTool("tool", sleeping(marker) + code.replaceAll("'600'", `'${marker}'`), fields);
    const run = await stage.run(requestWith("call tool {}\nsay going on", [tool], { sessionId: "faults" }));
    expect(await run.result).toMatchObject({ ok: true, output: expect.stringContaining("going on") });
    const [{ output } = { output: "" }] = run.resultsOf("tool");
    expect(String(output).length).toBeLessThan(5_000);
    expect(String(output)).toMatch(expected);
    expect(running(marker)).toBe(0);
  });
});

describe("two calls at once", () => {
  it("get their own results in any order", async () => {
    const arrived: (() => void)[] = [];
    // The responses are sent after both have arrived, the second one's first.
    await using platform = await startPlatform(async ({ arguments: { n } }) => {
      await new Promise<void>((resolve) => {
        arrived.push(resolve);
        if (arrived.length === 2) for (const answer of arrived.reverse()) setImmediate(answer);
      });
      return `answer ${n}`;
    });
    const lines = ['& call ask {"n":1}', '& call ask {"n":2}', '& call own {"n":3}', '& call own {"n":4}'];
    const tools = [callbackTool("ask"), nodeTool("own", "module.exports = ({ n }) => 'result ' + n;")];
    const toolCallback = { endpoint: platform.endpoint };
    const run = await stage.run(requestWith(lines.join("\n"), tools, { toolCallback, sessionId: "at-once" }));
    expect((await run.result).ok).toBe(true);
    const results = run.of("tool_call").map(({ id, input }) => [
      JSON.stringify(input),
      run
        .of("tool_result")
        .filter((result) => result.id === id)
        .map(({ output }) => output),
    ]);
    expect(Object.fromEntries(results)).toEqual({
      '{"n":1}': ['"answer 1"'],
      '{"n":2}': ['"answer 2"'],
      '{"n":3}': ["result 3"],
      '{"n":4}': ["result 4"],
    });
  });

  it("stay separate, even if they are equal", async () => {
    let next = 0;
    await using platform = await startPlatform(() => {
      next += 1;
      return `answer ${next}`;
    });
    const toolCallback = { endpoint: platform.endpoint };
    const prompt = "& call ask {}\n& call ask {}";
    const run = await stage.run(
      requestWith(prompt, [callbackTool("ask")], { toolCallback, sessionId: "same" }),
    );
    expect((await run.result).ok).toBe(true);
    const outputs = run.resultsOf("ask").map(({ output }) => output);
    expect(outputs.sort()).toEqual(['"answer 1"', '"answer 2"']);
  });
});

describe("an aborted call", () => {
  it("isn't executed later, and leaves no process", async () => {
    const marker = sleepMarker();
    await using platform = await startPlatform();
    // It would act half a second after it is aborted.
    const code = `
import json, subprocess, time, urllib.request
def call_back(name):
    data = {"data": {"id": "x", "function": {"name": name, "arguments": {}}}}
    urllib.request.urlopen(urllib.request.Request("${platform.endpoint}", json.dumps(data).encode(), method="POST"))
def main():
    subprocess.Popen(["sleep", "${marker}"])
    call_back("begun")
    time.sleep(0.5)
    call_back("executed")
`;
    const run = await stage.begin({
      harness: "demo",
      ...asking("call tool {}"),
      customTools: [pythonTool("tool", code)],
    });
    await expect.poll(() => platform.calls.length, { timeout: 15_000 }).toBe(1);
    expect(running(marker)).toBe(1);
    stage.runner.cancel(run.id);
    expect((await run.result).stopReason).toBe("cancelled");
    expect(running(marker)).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(platform.calls.map(({ name }) => name)).toEqual(["begun"]);
  });
});

describe("500 calls in one run", () => {
  it("keep memory flat", { timeout: 60_000 }, async () => {
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    const resultSize = 50_000;
    const used: number[] = [];
    let calls = 0;
    await using platform = await startPlatform(() => {
      calls += 1;
      if (calls % 100 === 0) {
        collect();
        used.push(process.memoryUsage().heapUsed);
      }
      return String(calls).padEnd(resultSize, "x");
    });
    const prompt = Array.from({ length: 500 }, (_, n) => `call ask {"n":${n}}`).join("\n");
    const body = { harness: "demo", ...asking(prompt), customTools: [callbackTool("ask")] };
    const run = await stage.runner
      .reserve()
      .admit({ ...body, toolCallback: { endpoint: platform.endpoint } }, { keepsEvents: false });
    let results = 0;
    for await (const part of run.parts()) {
      if ("result" in part) continue;
      for (const { event } of part.records)
        if (event.type === "tool_result" && event.isError !== true) results += 1;
    }
    expect(results).toBe(500);
    const [first = 0, , , , last = 0] = used;
    // If results were kept, they would take 400 times this.
    expect(last - first).toBeLessThan((400 * resultSize) / 4);
  });
});

describe("a runner that is killed while a tool runs", () => {
  it("leaves no process", { timeout: 60_000 }, async () => {
    const marker = sleepMarker();
    const program = fileURLToPath(new URL("../bin/ambit.mjs", import.meta.resolve("ambit")));
    const code = `import subprocess\ndef main(): subprocess.run(["setsid", "--wait", "sleep", "${marker}"])`;
    const child = spawn(process.execPath, [program, "run", "-"], { stdio: ["pipe", "ignore", "ignore"] });
    child.stdin.end(
      JSON.stringify({ harness: "demo", ...asking("call tool {}"), customTools: [pythonTool("tool", code)] }),
    );
    await expect.poll(() => running(`sleep ${marker}`), { timeout: 40_000 }).toBeGreaterThan(0);
    child.kill("SIGKILL");
    await once(child, "exit");
    await expect.poll(() => running(marker), { timeout: 10_000 }).toBe(0);
  });
});
