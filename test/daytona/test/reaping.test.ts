import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLoopbackDaytona } from "@ambit/daytona-loopback";
import { describe, expect, it } from "vitest";
import { connect, skipWithoutHost } from "./loopback.js";

const cgroups = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/pids"];

/** Folders and cgroups of loopbacks that a process owns or owned. */
const things = (owner: number) =>
  [tmpdir(), ...cgroups]
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    .filter((path) => path.includes(`/ambit-daytona-${owner}-`));

/** Running children of a process. */
const children = (parent: number) =>
  readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .filter((entry) => {
      try {
        const stat = readFileSync(`/proc/${entry}/stat`, "utf8");
        const [state, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return Number(ppid) === parent && state !== "Z";
      } catch {
        return false;
      }
    });

const links = () =>
  readFileSync("/proc/net/dev", "utf8")
    .split("\n")
    .filter((line) => line.includes("sandbox"));

const lives = (pid: number) => existsSync(`/proc/${pid}`);

describe("what a loopback leaves behind", () => {
  skipWithoutHost();

  it("is nothing after close, although programs run in it", async () => {
    const before = children(process.pid);
    const loopback = await startLoopbackDaytona({ startDelayMs: 0, snapshots: { ambit: {} } });
    const daytona = connect(loopback);
    const sandbox = await daytona.create({ snapshot: "ambit" });
    await sandbox.process.createSession("s");
    await sandbox.process.executeSessionCommand("s", {
      command: "setsid sleep 4400 & sleep 4401",
      runAsync: true,
    });
    const pid = loopback.sandboxes()[0]?.pid ?? 0;
    expect(lives(pid)).toBe(true);
    expect(things(process.pid).length).toBeGreaterThan(0);
    expect(children(process.pid).length).toBe(before.length + 1);
    await loopback.close();
    await loopback.close();
    await daytona[Symbol.asyncDispose]();
    expect(lives(pid)).toBe(false);
    expect(things(process.pid)).toEqual([]);
    expect(children(process.pid)).toEqual(before);
    expect(links()).toEqual([]);
  });

  it("is nothing after its owner was killed", async () => {
    const owner = spawn(process.execPath, [join(import.meta.dirname, "owner.mjs")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(owner.stdout, "data");
    const pid = Number(String(line));
    expect(lives(pid)).toBe(true);
    const ownerPid = owner.pid ?? 0;
    const runner = Number(children(ownerPid)[0]);
    owner.kill("SIGKILL");
    await once(owner, "exit");
    await expect.poll(() => lives(pid) || lives(runner), { timeout: 5_000 }).toBe(false);
    await expect.poll(() => things(ownerPid), { timeout: 5_000 }).toEqual([]);
  });

  it("is removed at the next start if the runner was killed too", async () => {
    // The name of an owner with another start time.
    const name = "ambit-daytona-1-1-abcdef";
    const left = [tmpdir(), ...cgroups.slice(1)]
      .filter((folder) => existsSync(folder))
      .map((folder) => join(folder, name));
    for (const folder of left) mkdirSync(folder, { recursive: true });
    try {
      await (await startLoopbackDaytona()).close();
      expect(left.filter((folder) => existsSync(folder))).toEqual([]);
    } finally {
      rmSync(join(tmpdir(), name), { recursive: true, force: true });
    }
  });
});
