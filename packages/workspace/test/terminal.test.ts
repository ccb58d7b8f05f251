import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sandbox } from "@ambit/core/plugin";
import { expect, it, onTestFinished, type TestContext, vi } from "vitest";
import { openTerminal } from "../src/terminal.js";
import { hostSandbox } from "./host-sandbox.js";

/** Where a program of the host is. */
function pathOf(name: string): string | undefined {
  const { stdout } = spawnSync("which", [name], { encoding: "utf8" });
  return stdout.trim() || undefined;
}

/** A terminal of the host, whose programs a test may take away. */
async function terminal(context: TestContext) {
  const missing = ["script", "stty", "tty"].filter((name) => pathOf(name) === undefined);
  if (missing.length > 0) context.skip(`host: it lacks ${missing.join(", ")}`);
  const folder = mkdtempSync(join(tmpdir(), "ambit-terminal-"));
  const programs = join(folder, "bin");
  mkdirSync(programs);
  for (const name of ["script", "stty", "tty", "sh", "bash"]) {
    const path = pathOf(name);
    if (path !== undefined) symlinkSync(path, join(programs, name));
  }
  symlinkSync(process.execPath, join(programs, "node"));
  const abort = new AbortController();
  onTestFinished(() => {
    abort.abort();
    rmSync(folder, { recursive: true });
  });
  const host = hostSandbox(folder);
  const sandbox: Sandbox = {
    ...host,
    image: { searchPath: programs, copyRoot: "/", mounted: false },
    // The shell has the home of the test's user, whose history it must not write.
    spawn: (command) => host.spawn({ ...command, env: { ...command.env, HISTFILE: "" } }),
  };
  const opened = await openTerminal(sandbox, { columns: 80, rows: 24 }, abort.signal);
  let printed = "";
  const decoder = new TextDecoder();
  const output = opened.output[Symbol.asyncIterator]();
  const until = async (text: string) => {
    while (!printed.includes(text)) {
      const { value, done } = await output.next();
      if (done) throw new Error(`it ended after ${JSON.stringify(printed)}`);
      printed += decoder.decode(value, { stream: true });
    }
  };
  return { ...opened, until, removeStty: () => rmSync(join(programs, "stty")) };
}

it("takes what is typed with the line separators of Unicode", async (context) => {
  const { write, until } = await terminal(context);
  await write("x=2; echo '\u2028\u2029'$((40 + x))\r");
  await until("\u2028\u202942");
});

it("stays open where it can't be resized", async (context) => {
  const { write, resize, until, removeStty } = await terminal(context);
  await write("echo begun$((1))\r");
  await until("begun1");
  removeStty();
  await resize({ columns: 100, rows: 30 });
  await write("echo still$((1))\r");
  await until("still1");
});

it("says that its time was over where its shell doesn't begin, and names the programs that it needs where it fails", async () => {
  const host = hostSandbox(tmpdir());
  const { signal } = new AbortController();
  const openWith = (...argv: [string, ...string[]]) =>
    openTerminal(
      { ...host, spawn: (command) => host.spawn({ ...command, argv }) },
      { columns: 80, rows: 24 },
      signal,
    );
  await expect(openWith("false")).rejects.toThrow("it needs node, script");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const opening = openWith("sleep", "100");
  const refused = expect(opening).rejects.toThrow("it didn't begin within 30 s");
  await vi.advanceTimersByTimeAsync(30_000);
  await refused;
});
