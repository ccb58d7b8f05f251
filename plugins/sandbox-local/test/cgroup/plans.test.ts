import { describe, expect, test } from "vitest";
import { groupOf, parseHierarchies, settingsFor } from "../../src/cgroup/session-groups.js";

describe("the locations of the groups", () => {
  const version1 = [
    "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
    "31 25 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory",
    "32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
    "33 25 0:29 / /proc rw - proc proc rw",
  ].join("\n");

  test("version 1: each controller in its own hierarchy", () => {
    const groups = "4:memory:/service/a\n3:cpu,cpuacct:/\n0::/service/a\n";
    expect(parseHierarchies(version1, groups)).toMatchObject({
      memory: { version: 1, ownGroup: "/sys/fs/cgroup/memory/service/a" },
      cpu: { version: 1, ownGroup: "/sys/fs/cgroup/cpu,cpuacct/" },
      pids: { version: 2 },
    });
  });

  test("version 2: one hierarchy for all", () => {
    const mounts = "32 25 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
    const ownGroup = "/sys/fs/cgroup/user.slice/runner";
    const everywhere = { version: 2, ownGroup, root: "/sys/fs/cgroup" };
    expect(parseHierarchies(mounts, "0::/user.slice/runner\n")).toEqual({
      memory: everywhere,
      pids: everywhere,
      cpu: everywhere,
    });
  });

  test("a container sees its own group as the top", () => {
    const mounts = "32 25 0:28 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
    expect(parseHierarchies(mounts, "4:memory:/docker/abc/runner\n").memory?.ownGroup).toBe(
      "/sys/fs/cgroup/memory/runner",
    );
  });

  test("of a process", () => {
    const both = "9:cpu,cpuacct:/a:b\n4:memory:/service/c\n0::/service/d\n";
    expect(groupOf(both, "cpu", 1)).toBe("/a:b");
    expect(groupOf(both, "memory", 1)).toBe("/service/c");
    expect(groupOf(both, "pids", 1)).toBeUndefined();
    expect(groupOf(both, "pids", 2)).toBe("/service/d");
  });

  test("none at all", () => {
    expect(parseHierarchies("", "")).toEqual({});
  });
});

describe("values written to the kernel", () => {
  test.each([
    [{}, 1, {}],
    [
      { memoryMb: 64 },
      1,
      { memory: { "memory.limit_in_bytes": "67108864", "memory.memsw.limit_in_bytes": "67108864" } },
    ],
    [{ memoryMb: 64 }, 2, { memory: { "memory.max": "67108864", "memory.swap.max": "0" } }],
    [{ processes: 20 }, 1, { pids: { "pids.max": "20" } }],
    [{ cpus: 0.5 }, 1, { cpu: { "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000" } }],
    [{ cpus: 1.5 }, 2, { cpu: { "cpu.max": "150000 100000" } }],
    [{ cpus: 0.001 }, 2, { cpu: { "cpu.max": "1000 100000" } }],
  ] as const)("%j under version %i", (limits, version, expected) => {
    const written = Object.entries(settingsFor(limits, version)).map(([controller, settings]) => [
      controller,
      Object.fromEntries((settings ?? []).map(({ file, value }) => [file, value])),
    ]);
    expect(Object.fromEntries(written)).toEqual(expected);
  });
});
