// needs: jail
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findHierarchies } from "../../src/cgroup/session-groups.js";
import { ConfinedSandbox } from "../../src/confined/session.js";
import { closed, confinedBackend, openConfined, run, scope, shell, specOf } from "../support/specs.js";
import { isRoot, testAsRoot } from "../support/user.js";

const limits = { resources: { memoryMb: 64, processes: 40, cpus: 0.5 } };

testAsRoot("limits bind from the first instruction, for all of a session's processes together", async () => {
  const sandbox = await openConfined(limits);
  const free = await openConfined();
  const fill = shell("head -c 134217728 /dev/zero | tail -c 134217728 | wc -c; echo ran");
  expect((await run(free, fill)).stdout).toBe("134217728\nran\n");
  expect((await run(sandbox, fill)).stdout).not.toMatch(/^134217728/);
  const scratch = shell("head -c 134217728 /dev/zero > /tmp/fill; stat -c %s /tmp/fill");
  expect((await run(free, scratch)).stdout).toBe("134217728\n");
  expect((await run(sandbox, scratch)).stdout).not.toBe("134217728\n");

  const fork = shell("i=0; while [ $i -lt 60 ]; do sleep 30 & echo started; i=$((i + 1)); done; echo all");
  expect((await run(free, fork)).stdout).toMatch(/all\n$/);
  const held = await run(sandbox, fork);
  expect(held.stdout.split("started").length - 1).toBeLessThan(40);
  expect(held.stderr).toMatch(/fork/i);
});

testAsRoot("every process is in the groups, including the launcher, and close removes them", async () => {
  const backend = await confinedBackend();
  const sandbox = await backend.open(specOf({ boundary: { ...closed, ...limits } }), scope);
  onTestFinished(() => sandbox.close());
  if (!(sandbox instanceof ConfinedSandbox)) throw new Error("not confined");
  const [first] = sandbox.groupPaths;
  expect(sandbox.groupPaths).toHaveLength(3);
  expect(sandbox.evidence).toMatchObject({ "pids.max": "40", "cpu.cfs_quota_us": "50000" });
  const started = await sandbox.spawn({
    argv: shell("echo up; exec sleep 60"),
    env: { PATH: "/usr/bin:/bin" },
  });
  await started.stdout.getReader().read();
  const programs = async () => {
    const members = (await readFile(join(String(first), "cgroup.procs"), "latin1")).trim().split("\n");
    const names = await Promise.all(members.map((pid) => readFile(`/proc/${pid}/comm`, "latin1")));
    return names.map((name) => name.trim()).sort();
  };
  await expect.poll(programs).toEqual(["bwrap", "relay", "sh", "sleep"]);
  await sandbox.close();
  await started.exit;
  expect(sandbox.groupPaths.filter((path) => existsSync(path))).toEqual([]);
});

testAsRoot("a program gets no descriptor of its groups", async () => {
  const look = shell("for fd in /proc/self/fd/*; do readlink $fd; done; echo ran");
  const { stdout } = await run(await openConfined(limits), look);
  expect(stdout).toMatch(/ran\n$/);
  expect(stdout).not.toMatch(/tasks|cgroup|ambit-/);
});

test("a limit that can't be applied, or lets no jail start, leaves no group", async () => {
  const boundary = { ...closed, ...(isRoot ? { resources: { processes: 1 } } : limits) };
  const backend = await confinedBackend();
  const opened = async () => {
    const sandbox = await backend.open(specOf({ boundary }), scope);
    onTestFinished(() => sandbox.close());
    return sandbox;
  };
  // The first sandbox of this runner: it tries whether a jail comes up.
  await expect(opened()).rejects.toThrow(/jail|limit/);
  await (await backend.open(specOf({ boundary: closed }), scope)).close();
  const started = async () => {
    const sandbox = await opened();
    try {
      await run(sandbox, shell("echo ran"));
    } finally {
      await sandbox.close();
    }
  };
  await expect(started()).rejects.toThrow(/jail|limit/);
  const { memory } = await findHierarchies();
  const left =
    memory === undefined ? [] : (await readdir(memory.ownGroup)).filter((name) => name.startsWith("ambit-"));
  expect(left.filter((name) => name.includes(`test-${process.pid}-`))).toEqual([]);
});

testAsRoot("programs find the limits where they look for them, and can't change them", async () => {
  const sandbox = await openConfined({ resources: { memoryMb: 512, processes: 60, cpus: 0.5 } });
  const free = await openConfined();
  const node = (script: string) => [process.execPath, "-p", script] as const;
  const memory = "process.constrainedMemory() / 2 ** 20";
  expect((await run(sandbox, node(memory))).stdout).toBe("512\n");
  expect((await run(free, node(memory))).stdout).not.toBe("512\n");
  const files = await run(sandbox, [
    "head",
    "-v",
    ...["cpu.max", "memory.max", "pids.max"].map((name) => `/sys/fs/cgroup/${name}`),
  ]);
  expect(files.stdout.replace(/==> .* <==\n/g, "")).toBe("50000 100000\n\n536870912\n\n60\n");
  const write = shell(
    "cd /sys/fs/cgroup; find . -type f -perm /222 | while read file; do (echo 0 > $file) 2>&1; done; echo ran",
  );
  const { stdout } = await run(sandbox, write);
  expect(stdout).toMatch(/Read-only file system(.|\n)*ran\n$/);
  expect(stdout.split("\n").filter((line) => !/Read-only file system|^ran$|^$/.test(line))).toEqual([]);
  // Neither the runner's groups nor those of others.
  const folders = await run(sandbox, ["find", "/sys/fs/cgroup", "-mindepth", "2", "-type", "d"]);
  expect(folders.stdout).toBe("");
});
