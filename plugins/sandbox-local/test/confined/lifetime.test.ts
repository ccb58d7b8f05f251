// needs: jail
import { randomInt } from "node:crypto";
import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { countWith, hostPids, statusRow } from "../support/host-processes.js";
import {
  closed,
  confinedBackend,
  openConfined,
  openUnconfined,
  path,
  scope,
  shell,
  specOf,
} from "../support/specs.js";

test("a process that detaches, forks twice and ignores every signal ends with its jail, at exit and at kill", async () => {
  const seconds = String(randomInt(1_000_000, 9_999_999));
  const daemon = `setsid sh -c 'trap "" TERM HUP INT; sleep ${seconds} & wait' </dev/null >/dev/null 2>&1 &`;
  const script = `${daemon} ${daemon} echo up`;
  const control = await openUnconfined();
  const bare = await control.spawn({ argv: shell(`${script}; read _`), env: { PATH: path } });
  await bare.stdout.getReader().read();
  const count = () => countWith(seconds);
  // The control: only this test's own search ends these.
  await expect.poll(count).toBe(2);
  await bare.kill();

  const sandbox = await openConfined();
  const killed = await sandbox.spawn({ argv: shell(`${script}; read _`), env: { PATH: path } });
  await killed.stdout.getReader().read();
  await expect.poll(count).toBe(2);
  await killed.kill();
  expect(await count()).toBe(0);

  const ended = await sandbox.spawn({ argv: shell(`${script}; read _`), env: { PATH: path } });
  await ended.stdout.getReader().read();
  await expect.poll(count).toBe(2);
  await ended.stdin.close();
  await ended.exit;
  expect(await count()).toBe(0);
});

test("a jail leaves no zombie, neither after its exit nor after a kill", async () => {
  const sandbox = await openConfined();
  const start = async () => {
    const known = new Set(hostPids());
    const started = await sandbox.spawn({ argv: shell("sleep 60 & echo up; read _"), env: { PATH: path } });
    await started.stdout.getReader().read();
    const uid = `${started.evidence.uid}`;
    const own = hostPids().filter((pid) => !known.has(pid) && statusRow(pid, "Uid")?.startsWith(uid));
    expect(own.length).toBeGreaterThanOrEqual(4);
    return { started, own };
  };
  const isThere = (pid: string) => statusRow(pid, "Name") !== undefined;
  const ended = await start();
  await ended.started.stdin.close();
  await ended.started.exit;
  // Not even as a zombie: a runner that is a container's first process doesn't reap orphans.
  expect(ended.own.filter(isThere)).toEqual([]);
  const killed = await start();
  await killed.started.kill();
  expect(killed.own.filter(isThere)).toEqual([]);
});

test("a sandbox that can't open reports the reason and leaves nothing", async () => {
  const backend = await confinedBackend({ userIds: { first: 62_950, count: 1 } });
  const spec = specOf({ boundary: closed, requiredPaths: [{ path: "/nowhere/agent", what: "The agent" }] });
  await expect(backend.open(spec, scope)).rejects.toThrow(/The agent isn't at \/nowhere\/agent/);
  // The same id again: neither its folder nor its user is in use.
  const sandbox = await backend.open({ ...spec, requiredPaths: [] }, scope);
  await sandbox.close();
});

test("close ends everything and may be called twice; opening and closing leaks no descriptor", async () => {
  const backend = await confinedBackend();
  const cycle = async () => {
    const sandbox = await backend.open(specOf({ boundary: closed }), scope);
    await sandbox.expose(() => new Response("up"));
    const started = await sandbox.spawn({ argv: ["sleep", "60"], env: { PATH: path } });
    await Promise.all([sandbox.close(), sandbox.close()]);
    expect(await started.exit).toEqual({ code: null, signal: "SIGKILL" });
    await expect(sandbox.spawn({ argv: ["true"], env: {} })).rejects.toThrow(/is closed/);
  };
  await cycle();
  const before = readdirSync("/proc/self/fd").length;
  for (let each = 0; each < 10; each++) await cycle();
  await Promise.all(Array.from({ length: 10 }, cycle));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(readdirSync("/proc/self/fd").length).toBeLessThanOrEqual(before);
});

test("a spawn that races with close doesn't outlive it", async () => {
  const sandbox = await openConfined();
  const seconds = String(randomInt(1_000_000, 9_999_999));
  const spawning = sandbox.spawn({ argv: ["sleep", seconds], env: { PATH: path } });
  const refused = expect(spawning).rejects.toThrow(/is closed/);
  await sandbox.close();
  await refused;
  expect(await countWith(seconds)).toBe(0);
});
