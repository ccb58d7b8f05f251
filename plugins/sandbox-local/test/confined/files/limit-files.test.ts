import { mkdir, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LimitedGroup } from "../../../src/cgroup/session-groups.js";
import { limitFiles } from "../../../src/confined/jail-setup.js";
import { temporaryFolder } from "../../support/specs.js";

const limits = { memoryMb: 512, cpus: 0.5 };

async function groupsIn(folder: string, groups: Readonly<Record<string, Omit<LimitedGroup, "path">>>) {
  const limited = new Map<"memory" | "cpu", LimitedGroup>();
  for (const [path, { version, root }] of Object.entries(groups)) {
    await mkdir(join(folder, path), { recursive: true, mode: 0o700 });
    const controllers =
      version === 2 ? (["memory", "cpu"] as const) : ([path === "m" ? "memory" : "cpu"] as const);
    for (const controller of controllers)
      limited.set(controller, { path: join(folder, path), version, root });
  }
  return { limited };
}

test("under version 2, programs find the session's group itself", async () => {
  const folder = await temporaryFolder();
  const groups = await groupsIn(folder, { g: { version: 2, root: "/sys/fs/cgroup" } });
  expect(await limitFiles(groups, limits, folder, false)).toEqual([
    { source: join(folder, "g"), path: "/sys/fs/cgroup" },
  ]);
});

test("under version 1, they find each controller's group, and the files of version 2", async () => {
  const folder = await temporaryFolder();
  const groups = await groupsIn(folder, {
    m: { version: 1, root: "/sys/fs/cgroup/memory" },
    c: { version: 1, root: "/sys/fs/cgroup/cpu,cpuacct" },
  });
  const view = join(folder, "limits");
  expect(await limitFiles(groups, limits, folder, false)).toEqual([
    { source: view, path: "/sys/fs/cgroup" },
    { source: join(folder, "m"), path: "/sys/fs/cgroup/memory" },
    { source: join(folder, "c"), path: "/sys/fs/cgroup/cpu,cpuacct" },
  ]);
  expect((await readdir(view)).sort()).toEqual([
    "cpu",
    "cpu,cpuacct",
    "cpu.max",
    "cpuacct",
    "memory",
    "memory.max",
  ]);
  expect(await readlink(join(view, "cpu"))).toBe("cpu,cpuacct");
  expect(await readFile(join(view, "cpu.max"), "latin1")).toBe("50000 100000\n");
});

test("a group that the jail's user can't reach is described by its files alone", async () => {
  const folder = await temporaryFolder();
  const groups = await groupsIn(folder, { "closed/g": { version: 2, root: "/sys/fs/cgroup" } });
  expect(await limitFiles(groups, limits, folder, true)).toEqual([
    { source: join(folder, "limits"), path: "/sys/fs/cgroup" },
  ]);
});
