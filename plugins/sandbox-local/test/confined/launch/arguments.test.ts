import { describe, expect, test } from "vitest";
import { bubblewrapArguments, type Jail } from "../../../src/confined/arguments.js";

const plain: Jail = {
  system: [
    { kind: "folder", path: "/usr" },
    { kind: "link", path: "/bin", target: "usr/bin" },
  ],
  etc: { folder: "/data/etc", shown: [] },
  requiredPaths: [],
  covered: [],
  workspace: { descriptor: 7, writable: true },
  workspaceMounts: [],
  agentHome: undefined,
  scratchBytes: 1024,
  shell: "/data/sh",
  bubblewrap: "/usr/bin/bwrap",
  channel: [],
  network: "own",
  coveredProc: [],
  environment: { PATH: "/usr/bin" },
  cwd: "/workspace",
  descriptors: { seccomp: 6, info: 4 },
};

/** The index of a sequence of arguments; -1 if it isn't there. */
function at(jail: Partial<Jail>, ...sequence: string[]): number {
  return bubblewrapArguments({ ...plain, ...jail })
    .flat()
    .findIndex((_argument, index, built) => sequence.every((wanted, step) => built[index + step] === wanted));
}

describe("every jail", () => {
  test.each([
    [["--unshare-user"]],
    [["--unshare-pid"]],
    [["--unshare-ipc"]],
    [["--unshare-uts"]],
    [["--disable-userns"]],
    [["--cap-drop", "ALL"]],
    [["--uid", "1000", "--gid", "1000"]],
    [["--new-session"]],
    [["--die-with-parent"]],
    [["--as-pid-1"]],
    [["--clearenv", "--setenv", "PATH", "/usr/bin"]],
    [["--proc", "/proc"]],
    [["--ro-bind", "/usr", "/usr"]],
    [["--symlink", "usr/bin", "/bin"]],
    [["--ro-bind", "/data/etc", "/etc"]],
    [["--remount-ro", "/dev"]],
    [["--perms", "1777", "--size", "1024", "--tmpfs", "/tmp"]],
    [["--perms", "1777", "--size", "1024", "--tmpfs", "/dev/shm"]],
    [["--seccomp", "6"]],
    [["--info-fd", "4"]],
    [["--ro-bind", "/data/sh", "/run/ambit/sh"]],
    [["--chdir", "/workspace"]],
  ])("has %j", (sequence) => {
    expect(at({}, ...sequence)).toBeGreaterThanOrEqual(0);
  });
});

describe("the differences between jails", () => {
  test.each<[string, Partial<Jail>, string[], boolean]>([
    ["a separate network", { network: "own" }, ["--unshare-net"], true],
    ["the host's network", { network: "shared" }, ["--unshare-net"], false],
    ["a writable workspace", {}, ["--bind-fd", "7", "/workspace"], true],
    [
      "a read-only workspace",
      { workspace: { descriptor: 7, writable: false } },
      ["--ro-bind-fd", "7", "/workspace"],
      true,
    ],
    [
      "a readable but not writable workspace",
      { workspace: { descriptor: 7, writable: false } },
      ["--bind-fd", "7"],
      false,
    ],
    ["no workspace: scratch", { workspace: undefined }, ["--size", "1024", "--tmpfs", "/workspace"], true],
    ["no workspace: nothing bound", { workspace: undefined }, ["--bind-fd"], false],
    ["a tool's home: scratch", {}, ["--size", "1024", "--tmpfs", "/home/tool"], true],
    ["the agent's home", { agentHome: 8 }, ["--bind-fd", "8", "/home/agent"], true],
    ["the agent's home: no tool's", { agentHome: 8 }, ["--tmpfs", "/home/tool"], false],
    ["a required path", { requiredPaths: [{ source: "/a", path: "/b" }] }, ["--ro-bind", "/a", "/b"], true],
    ["the channel", { channel: [{ source: "/s", path: "/c", socket: true }] }, ["--bind", "/s", "/c"], true],
    [
      "one of Ambit's programs",
      { channel: [{ source: "/s", path: "/c", socket: false }] },
      ["--ro-bind", "/s", "/c"],
      true,
    ],
    [
      "a hidden file",
      { workspaceMounts: [{ kind: "hide-file", path: "key" }] },
      ["--ro-bind", "/dev/null", "/workspace/key"],
      true,
    ],
    [
      "a hidden folder",
      { workspaceMounts: [{ kind: "hide-folder", path: "keys" }] },
      ["--tmpfs", "/workspace/keys", "--remount-ro", "/workspace/keys"],
      true,
    ],
    [
      "a read-only path",
      { workspaceMounts: [{ kind: "read", path: "a/b" }] },
      ["--ro-bind", "/workspace/a/b", "/workspace/a/b"],
      true,
    ],
  ])("%s", (_name, jail, sequence, isThere) => {
    expect(at(jail, ...sequence) >= 0).toBe(isThere);
  });

  test("the root becomes read-only after the last mount, and covers come after what they cover", () => {
    const jail: Partial<Jail> = {
      requiredPaths: [{ source: "/opt/versions", path: "/opt/versions" }],
      covered: ["/opt/versions/data"],
      channel: [{ source: "/s", path: "/c", socket: true }],
    };
    const root = at(jail, "--remount-ro", "/");
    for (const sequence of [["--bind-fd"], ["--bind", "/s", "/c"], ["--ro-bind", "/opt/versions"]]) {
      expect(at(jail, ...sequence)).toBeLessThan(root);
    }
    expect(at(jail, "--tmpfs", "/opt/versions/data")).toBeGreaterThan(at(jail, "--ro-bind", "/opt/versions"));
  });
});

describe("a jail with mounts in its workspace", () => {
  const mounts: Partial<Jail> = {
    workspace: { descriptor: 7, writable: false },
    workspaceMounts: [
      { kind: "write", path: "out" },
      { kind: "hide-folder", path: "out/keys" },
    ],
  };
  const [first, second = []] = bubblewrapArguments({ ...plain, ...mounts });
  const has = (line: readonly string[], ...sequence: string[]) =>
    line.join("\n").includes(sequence.join("\n"));

  test("is made by two bubblewraps, and the first resolves no path of the workspace", () => {
    expect(bubblewrapArguments(plain)).toHaveLength(1);
    expect(bubblewrapArguments({ ...plain, ...mounts, workspace: undefined })).toHaveLength(1);
    expect(first.filter((word) => word.startsWith("/workspace/"))).toEqual([]);
    expect(has(first, "--ro-bind", "/usr/bin/bwrap", "/run/ambit/bwrap")).toBe(true);
    expect(has(second, "--dev-bind", "/", "/", "--ro-bind", "/workspace", "/workspace")).toBe(true);
    expect(has(second, "--bind", "/workspace/out", "/workspace/out", "--size")).toBe(true);
  });

  test("gives the second bubblewrap a workspace that can be written, and no variable of the program's", () => {
    expect(has(first, "--bind-fd", "7", "/workspace")).toBe(true);
    expect(first).toContain("--clearenv");
    expect(first).not.toContain("--setenv");
  });

  test("is closed by the second: nested namespaces, capabilities, the filter", () => {
    for (const option of ["--disable-userns", "--seccomp"]) {
      expect(first).not.toContain(option);
      expect(second).toContain(option);
    }
    expect(has(first, "--cap-drop", "ALL") && has(second, "--cap-drop", "ALL")).toBe(true);
  });
});
