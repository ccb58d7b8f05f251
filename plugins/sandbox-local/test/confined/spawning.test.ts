// needs: jail
import type { Command } from "@ambit/core/plugin";
import { expect, onTestFinished, test } from "vitest";
import { confinedBackend, finish, openConfined, path, scope, shell, specOf } from "../support/specs.js";

test("streams, exit code and signal are passed on", async () => {
  const sandbox = await openConfined();
  const started = await sandbox.spawn({ argv: shell("cat; echo problem >&2; exit 7"), env: { PATH: path } });
  const writer = started.stdin.getWriter();
  await writer.write(new TextEncoder().encode("through"));
  await writer.close();
  expect(await finish(started)).toEqual({ stdout: "through", stderr: "problem\n", code: 7, signal: null });

  const killed = await sandbox.spawn({ argv: ["sleep", "60"], env: { PATH: path } });
  await Promise.all([killed.kill(), killed.kill()]);
  expect(await killed.exit).toEqual({ code: null, signal: "SIGKILL" });
  await killed.kill();

  const asked = await sandbox.spawn({ argv: ["sleep", "60"], env: { PATH: path } });
  await asked.kill("SIGTERM");
  expect(await asked.exit).toEqual({ code: null, signal: "SIGTERM" });

  const polite = await sandbox.spawn({
    argv: shell('trap "exit 3" TERM; echo up; while :; do sleep 0.05; done'),
    env: { PATH: path },
  });
  await polite.stdout.getReader().read();
  await polite.kill("SIGTERM");
  expect(await polite.exit).toEqual({ code: 3, signal: null });
});

test("an aborted signal ends the process, even before it began", async () => {
  const sandbox = await openConfined();
  const abort = new AbortController();
  const started = await sandbox.spawn({
    argv: shell('trap "" TERM INT HUP; echo up; while :; do sleep 1; done'),
    env: { PATH: path },
    signal: abort.signal,
  });
  await started.stdout.getReader().read();
  abort.abort();
  expect(await started.exit).toEqual({ code: null, signal: "SIGKILL" });
  await expect(sandbox.spawn({ argv: ["true"], env: {}, signal: abort.signal })).rejects.toThrow(/abort/i);
});

test.each<[Command["argv"], Partial<Command>, RegExp]>([
  [["no-such-program"], {}, /no-such-program can't be started: .*ENOENT/],
  [["/workspace/missing"], {}, /\/workspace\/missing can't be started/],
  [["true", "a\0b"], {}, /must not contain NUL/],
  [["true"], { cwd: "elsewhere" }, /must be an absolute path/],
  [["true", "x".repeat(200_000)], {}, /can't be started: .*E2BIG/],
  [["true"], { cwd: "/nowhere" }, /bwrap: Can't chdir to \/nowhere/],
])("%# fails the spawn with the reason", async (argv, options, message) => {
  const sandbox = await openConfined();
  await expect(sandbox.spawn({ argv, env: { PATH: path }, ...options })).rejects.toThrow(message);
});

test.each<[Command["argv"], string, RegExp]>([
  [["true"], "/nowhere", /bwrap: Can't chdir to \/nowhere/],
  [["no-such-program"], "/workspace", /no-such-program can't be started: .*ENOENT/],
])("%# gives the reason also when the runner sees it together with the end", async (argv, cwd, message) => {
  const sandbox = await openConfined();
  const cell = new Int32Array(new SharedArrayBuffer(4));
  // The event loop of a busy runner: what a child wrote and its end arrive in the same turn.
  const busy = setInterval(() => Atomics.wait(cell, 0, 0, 100));
  onTestFinished(() => clearInterval(busy));
  await expect(sandbox.spawn({ argv, cwd, env: { PATH: path } })).rejects.toThrow(message);
});

test("a boundary that it can't enforce is refused", async () => {
  const backend = await confinedBackend({ unconfined: "allow" });
  await expect(
    backend.open(specOf({ boundary: { ...specOf().boundary, secrets: "hidden" } }), scope),
  ).rejects.toThrow(/secrets.hidden/);
});

test("without a boundary it is confined if the host can, unless configured otherwise", async () => {
  const confined = await (await confinedBackend()).open(specOf(), scope);
  onTestFinished(() => confined.close());
  expect(confined.confinement).toBe("confined");
  const preferred = await (await confinedBackend({ unconfined: "prefer" })).open(specOf(), scope);
  onTestFinished(() => preferred.close());
  expect(preferred.confinement).toBe("unconfined");
});
