import { describe, expect, test } from "vitest";
import { type Rewriting, weakenedArguments } from "./jails/arguments.ts";
import { removableMechanisms } from "./jails/mechanisms.ts";

const planned = [
  ...["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--disable-userns"],
  ...["--new-session", "--die-with-parent", "--as-pid-1", "--proc", "/proc", "--remount-ro", "/dev"],
  ...["--remount-ro", "/", "--clearenv", "--setenv", "A", "--seccomp", "--seccomp", "6"],
];
const whole: Rewriting = {
  without: [],
  decoys: { folders: ["/decoys"], environment: { CANARY: "1" } },
  scratch: undefined,
  sessions: [],
  userNamespace: undefined,
  mounted: [],
};
const weakenedLine = (line: readonly string[], rewriting: Rewriting) =>
  weakenedArguments([line], rewriting).flat();
const changeOf = (change: Partial<Rewriting>) => {
  const result = weakenedLine(planned, { ...whole, ...change });
  return {
    gone: planned.filter((argument) => !result.includes(argument)),
    added: result.filter((argument) => !planned.includes(argument)),
  };
};

test("a jail without removals is the planned one", () => {
  expect(weakenedLine(planned, whole)).toEqual(planned);
});

describe("only what is named is removed", () => {
  test.each<[string, Partial<Rewriting>, readonly string[], readonly string[]]>([
    ["the ipc namespace", { without: ["ipc namespace"] }, ["--unshare-ipc"], []],
    [
      "the pid namespace",
      { without: ["pid namespace"] },
      ["--unshare-pid", "--as-pid-1", "--proc"],
      ["--ro-bind"],
    ],
    ["the exit with the runner", { without: ["exit with the runner"] }, ["--die-with-parent"], []],
    ["nested namespaces", { without: ["refusal of nested user namespaces"] }, ["--disable-userns"], []],
    ["the user namespace", { userNamespace: 9 }, ["--unshare-user", "--disable-userns"], ["--userns", "9"]],
    ["the filter", { without: ["system call filter"] }, ["6"], []],
    ["hidden files", { without: ["hidden host files"] }, [], ["--bind", "/decoys", "/decoys"]],
    ["scratch", { scratch: "/s" }, [], ["--bind", "/s", "/tmp"]],
    ["sessions", { sessions: ["/w"] }, [], ["--bind", "/w", "/run/session-0"]],
    ["the environment", { without: ["cleared environment"] }, [], ["CANARY", "1"]],
  ])("%s", (_name, change, gone, added) => {
    expect(changeOf(change)).toEqual({ gone, added });
  });

  test("a variable's value that looks like the filter stays", () => {
    const result = weakenedLine(planned, { ...whole, without: ["system call filter"] });
    expect(result.slice(-3)).toEqual(["--setenv", "A", "--seccomp"]);
  });

  test("mechanisms outside the command line change nothing", () => {
    const onIt = [
      ...["ipc namespace", "pid namespace", "exit with the runner", "refusal of nested user namespaces"],
      ...["system call filter", "hidden host files", "cleared environment"],
    ];
    const without = removableMechanisms.filter((mechanism) => !onIt.includes(mechanism));
    expect(changeOf({ without })).toEqual({ gone: [], added: [] });
  });
});

test("an unknown command line is refused, so that no control is a complete jail", () => {
  const other = planned.filter((argument) => argument !== "--unshare-ipc");
  expect(() => weakenedLine(other, { ...whole, without: ["ipc namespace"] })).toThrow(/--unshare-ipc/);
});

test("the mounts of a second bubblewrap are made by the first, from open descriptors", () => {
  const first = ["--bind-fd", "7", "/workspace", "--remount-ro", "/", "--clearenv", "--info-fd", "4"];
  const second = [
    ...[
      "--unshare-user",
      "--disable-userns",
      "--dev-bind",
      "/",
      "/",
      "--bind",
      "/workspace/a",
      "/workspace/a",
    ],
    ...["--ro-bind", "/dev/null", "/workspace/a/key", "--ro-bind", "/workspace/b", "/workspace/b"],
    ...["--remount-ro", "/", "--seccomp", "6"],
  ];
  const change: Rewriting = { ...whole, without: ["second bubblewrap"], mounted: [8, 9] };
  expect(weakenedArguments([first, second], change)).toEqual([
    [
      ...["--bind-fd", "7", "/workspace", "--bind-fd", "8", "/workspace/a"],
      ...["--ro-bind", "/dev/null", "/workspace/a/key", "--ro-bind-fd", "9", "/workspace/b"],
      ...["--remount-ro", "/", "--seccomp", "6", "--disable-userns", "--info-fd", "4"],
    ],
  ]);
  expect(weakenedArguments([first], change)).toEqual([first]);
});
