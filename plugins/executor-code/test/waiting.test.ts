import { existsSync } from "node:fs";
import { RunTimedOut, type ToolOutcome } from "@ambit/core/plugin";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { BareSandbox } from "./bare-sandbox.js";
import { executorOf, node, python, TestRun } from "./test-run.js";

function startRun(config: object = {}, resources = {}) {
  const sandbox = new BareSandbox("confined");
  const run = new TestRun(executorOf(config), sandbox, resources);
  onTestFinished(() => run.end());
  return { run, sandbox };
}

/** The interpreters started so far, once there are so many. */
const started = (sandbox: BareSandbox, count: number) =>
  vi.waitFor(() => expect(sandbox.processes).toHaveLength(count), { timeout: 30_000 });

const returned = (outcome: ToolOutcome) => (outcome.status === "completed" ? outcome.data : outcome);

const cases = [
  [
    "python",
    python(
      "import os, builtins\ndef main():\n  builtins.seen = True; os.environ['SEEN'] = '1'; return os.getpid()",
    ),
    python(
      "import os, builtins\ndef main(): return [os.getppid(), hasattr(builtins, 'seen'), 'SEEN' in os.environ]",
    ),
  ],
  [
    "node",
    node("exports.main = () => { globalThis.seen = true; process.env.SEEN = '1'; return process.pid }"),
    node("exports.main = () => [process.ppid, 'seen' in globalThis, 'SEEN' in process.env]"),
  ],
] as const;

describe.each(cases)(
  "%s: the interpreter that is started ahead of a run's next call",
  (_runtime, first, second) => {
    test("gets that call, ends with it, and has seen nothing of the previous one", async () => {
      const { run, sandbox } = startRun();
      await run.call(first);
      await started(sandbox, 2);
      const spawn = vi.spyOn(sandbox, "spawn");
      expect(returned(await run.call(second))).toEqual([process.pid, false, false]);
      await sandbox.processes[1]?.exit;
      // One more was made ready for a third call, after the second was answered.
      await started(sandbox, 3);
      expect(spawn).toHaveBeenCalledTimes(1);
    });

    test("is ready for the first call, once for each runtime of the run's tools", async () => {
      const { run, sandbox } = startRun();
      run.prepare(first, second, first);
      await started(sandbox, 1);
      expect(returned(await run.call(second))).toEqual([process.pid, false, false]);
      // The one that had the call, and the next.
      await started(sandbox, 2);
    });

    test("was started without anything of a tool", async () => {
      const { run, sandbox } = startRun();
      await run.call({ ...first, env: { TOKEN: "s3cret-value" } }, {});
      await started(sandbox, 2);
      expect(sandbox.commands[1]).toEqual({ ...sandbox.commands[0], signal: expect.any(AbortSignal) });
      expect(JSON.stringify(sandbox.commands)).not.toContain("s3cret-value");
    });

    test("ends with the run", async () => {
      const { run, sandbox } = startRun();
      await run.call(first);
      await started(sandbox, 2);
      expect(sandbox.scratch.filter((folder) => existsSync(folder))).toHaveLength(1);
      await run.end();
      expect(await sandbox.processes[1]?.exit).toEqual({ code: null, signal: "SIGKILL" });
      expect(sandbox.scratch.filter((folder) => existsSync(folder))).toEqual([]);
    });
  },
);

const one = python("def main(): return 1");

test("is replaced if it dies while it waits", async () => {
  const { run, sandbox } = startRun();
  await run.call(one);
  await started(sandbox, 2);
  await sandbox.processes[1]?.kill();
  await sandbox.processes[1]?.exit;
  expect(returned(await run.call(one))).toBe(1);
});

test("fails no call if it can't be started", async () => {
  const { run, sandbox } = startRun();
  await run.call(one);
  await started(sandbox, 2);
  const { spawn } = sandbox;
  const refused = vi.spyOn(sandbox, "spawn").mockRejectedValue(new Error("no room"));
  expect(returned(await run.call(one))).toBe(1);
  await vi.waitFor(() => expect(refused).toHaveBeenCalled(), 30_000);
  refused.mockImplementation(spawn.bind(sandbox));
  expect(returned(await run.call(one))).toBe(1);
});

test("serves one of two simultaneous calls, and the other doesn't wait", async () => {
  const { run, sandbox } = startRun();
  await run.call(one);
  await started(sandbox, 2);
  const outcomes = await Promise.all([run.call(one), run.call(one)]);
  expect(outcomes.map(returned)).toEqual([1, 1]);
});

test("applies the time limit of its call", async () => {
  const { run, sandbox } = startRun();
  await run.call(one);
  await started(sandbox, 2);
  const limit = new AbortController();
  setTimeout(() => limit.abort(new RunTimedOut("too long")), 200);
  const outcome = await run.call(python("while True: pass"), {}, limit.signal);
  expect(outcome).toEqual({ status: "failed", output: "code tool timed out after 300ms" });
  expect(await sandbox.processes[1]?.exit).toEqual({ code: null, signal: "SIGKILL" });
});

test("leaves nothing if a call is aborted while its interpreter starts", async () => {
  const { run, sandbox } = startRun();
  const spawn = sandbox.spawn.bind(sandbox);
  await run.call(one);
  await started(sandbox, 2);
  // The next one takes its time.
  let proceed = () => {};
  const held = new Promise<void>((resolve) => {
    proceed = resolve;
  });
  const slow = vi.spyOn(sandbox, "spawn").mockImplementation(async (command) => {
    await held;
    return spawn(command);
  });
  await run.call(one);
  await vi.waitFor(() => expect(slow).toHaveBeenCalledTimes(1), 30_000);
  const abort = new AbortController();
  const call = run.call(one, {}, abort.signal);
  abort.abort();
  proceed();
  expect(await call).toEqual({ status: "failed", output: "code tool was aborted" });
  await Promise.all(sandbox.processes.map(({ exit }) => exit));
  expect(sandbox.scratch.filter((folder) => existsSync(folder))).toEqual([]);
});

test("isn't started by a call that ends after its run", async () => {
  const { run, sandbox } = startRun();
  await run.call(one);
  await run.end();
  await Promise.all(sandbox.processes.map(({ exit }) => exit));
  expect(sandbox.scratch.filter((folder) => existsSync(folder))).toEqual([]);
});

describe("no interpreter waits", () => {
  const none = async (run: TestRun, sandbox: BareSandbox) => {
    await run.call(one);
    await run.call(one);
    await new Promise(setImmediate);
    expect(sandbox.commands).toHaveLength(2);
  };

  test("if other processes could read it", async () => {
    const sandbox = new BareSandbox("unconfined");
    await none(new TestRun(executorOf(), sandbox), sandbox);
  });

  test.each([{ processes: 99 }, { memoryMb: 511 }])(
    "where it would take what the run has little of: %j",
    async (resources) => {
      const { run, sandbox } = startRun({}, resources);
      await none(run, sandbox);
    },
  );

  test("if the deployer disabled that", async () => {
    const { run, sandbox } = startRun({ prewarm: false });
    await none(run, sandbox);
  });
});
