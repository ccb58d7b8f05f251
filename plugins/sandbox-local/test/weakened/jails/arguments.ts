import type { CommandLine } from "../../../dist/confined/arguments.js";
import { inside } from "../../../dist/confined/arguments.js";
import { revealingProcEntries } from "../../../dist/confined/jail-setup.js";
import type { JailDecoys, RemovableMechanism } from "./mechanisms.ts";

export interface Rewriting {
  readonly without: readonly RemovableMechanism[];
  readonly decoys: JailDecoys;
  /** Folder that replaces the scratch of all jails, if they have no private one. */
  readonly scratch: string | undefined;
  /** Workspaces of all sessions, if they aren't separated. */
  readonly sessions: readonly string[];
  /** Number of an open user namespace, if jails don't make one each. */
  readonly userNamespace: number | undefined;
  /** Numbers of what is mounted in the workspace, if the first bubblewrap mounts it. */
  readonly mounted: readonly number[];
}

/**
 * bubblewrap's command lines without the mechanisms. Pure. @throws RangeError for one that isn't known here.
 */
export function weakenedArguments(
  planned: readonly CommandLine[],
  rewriting: Rewriting,
): readonly CommandLine[] {
  const { without, decoys, scratch, sessions, userNamespace, mounted } = rewriting;
  const lacks = (mechanism: RemovableMechanism) => without.includes(mechanism);
  let result = lacks("second bubblewrap") ? inOne(planned, mounted) : planned;
  if (lacks("ipc namespace")) result = replace(result, ["--unshare-ipc"], []);
  if (lacks("pid namespace")) {
    result = replace(result, ["--unshare-pid"], []);
    result = replace(result, ["--as-pid-1"], []);
    // Only the owner of a pid namespace may mount its `/proc` anew.
    result = replace(result, ["--proc", "/proc"], ["--ro-bind", "/proc", "/proc"]);
  }
  if (lacks("covered kernel tables")) {
    for (const path of revealingProcEntries.filter((one) => result.some((line) => line.includes(one)))) {
      result = replace(result, ["--ro-bind", "/dev/null", path], []);
    }
  }
  if (lacks("exit with the runner")) result = replace(result, ["--die-with-parent"], []);
  if (lacks("refusal of nested user namespaces") || userNamespace !== undefined) {
    result = replace(result, ["--disable-userns"], []);
  }
  if (userNamespace !== undefined) {
    result = replace(result, ["--unshare-user"], ["--userns", String(userNamespace)]);
  }
  if (lacks("system call filter")) {
    const last = result.at(-1) ?? [];
    const number = last[last.lastIndexOf("--seccomp") + 1] ?? "";
    result = replace(result, ["--seccomp", number], []);
  }
  const shown = [
    ...(scratch === undefined ? [] : [[scratch, "/tmp"] as const]),
    ...(lacks("hidden host files") ? decoys.folders.map((path) => [path, path] as const) : []),
    ...sessions.map((path, index) => [path, `/run/session-${index}`] as const),
  ];
  const binds = shown.flatMap(([source, path]) => ["--bind", source, path]);
  // Before the root becomes read-only, since mount points for them must be created.
  result = replace(result, ["--remount-ro", "/"], [...binds, "--remount-ro", "/"]);
  if (!lacks("cleared environment")) return result;
  const canaries = Object.entries(decoys.environment).flatMap(([name, value]) => ["--setenv", name, value]);
  return result.with(-1, [...(result.at(-1) ?? []), ...canaries]);
}

/** The second bubblewrap's mounts made by the first one, by descriptor: it still has the host's tree. */
function inOne(planned: readonly CommandLine[], descriptors: readonly number[]): readonly CommandLine[] {
  const [first, second] = planned;
  if (first === undefined || second === undefined) return planned;
  const sources = descriptors.values();
  const mounts = second.slice(second.indexOf("--dev-bind") + 3);
  const byDescriptor = mounts.map((word, at) => {
    if (isBind(word) && isInWorkspace(mounts[at + 1])) return `${word}-fd`;
    return isBind(mounts[at - 1]) && isInWorkspace(word) ? String(sources.next().value) : word;
  });
  return [
    [
      ...first.slice(0, first.lastIndexOf("--remount-ro")),
      ...byDescriptor,
      ...["--disable-userns", "--info-fd", first.at(-1) ?? ""],
    ],
  ];
}

const isBind = (word = "") => word === "--bind" || word === "--ro-bind";
const isInWorkspace = (word = "") => word.startsWith(`${inside.workspace}/`);

/** In the first command line that has the sequence. */
function replace(
  planned: readonly CommandLine[],
  sequence: readonly string[],
  by: readonly string[],
): readonly CommandLine[] {
  for (const [number, line] of planned.entries()) {
    const at = line.findIndex((_argument, start) =>
      sequence.every((argument, offset) => line[start + offset] === argument),
    );
    if (at !== -1) {
      return planned.with(number, [...line.slice(0, at), ...by, ...line.slice(at + sequence.length)]);
    }
  }
  throw new RangeError(`A jail has no ${sequence.join(" ")} to remove`);
}
