import { tellsOfHost } from "../../confined/files/system.js";
import type { Decoys, Mechanism } from "./mechanisms.js";

export interface Rewriting {
  readonly without: readonly Mechanism[];
  readonly decoys: Decoys;
  /** Folder that replaces the scratch of all jails, if they have no private one. */
  readonly scratch: string | undefined;
  /** Workspaces of all sessions, if they aren't separated. */
  readonly sessions: readonly string[];
  /** Number of an open user namespace, if jails don't make one each. */
  readonly userNamespace: number | undefined;
}

/**
 * bubblewrap's command line without the mechanisms. Pure. @throws RangeError for a command line that isn't known here.
 */
export function weakenedArguments(planned: readonly string[], rewriting: Rewriting): readonly string[] {
  const { without, decoys, scratch, sessions, userNamespace } = rewriting;
  const lacks = (mechanism: Mechanism) => without.includes(mechanism);
  let result = planned;
  if (lacks("ipc namespace")) result = replace(result, ["--unshare-ipc"], []);
  if (lacks("pid namespace")) {
    result = replace(result, ["--unshare-pid"], []);
    result = replace(result, ["--as-pid-1"], []);
    // Only the owner of a pid namespace may mount its `/proc` anew.
    result = replace(result, ["--proc", "/proc"], ["--ro-bind", "/proc", "/proc"]);
  }
  if (lacks("covered kernel tables")) {
    for (const path of tellsOfHost.filter((one) => result.includes(one))) {
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
    const number = result[result.lastIndexOf("--seccomp") + 1] ?? "";
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
  return [
    ...result,
    ...Object.entries(decoys.environment).flatMap(([name, value]) => ["--setenv", name, value]),
  ];
}

function replace(
  planned: readonly string[],
  sequence: readonly string[],
  by: readonly string[],
): readonly string[] {
  const at = planned.findIndex((_argument, start) =>
    sequence.every((argument, offset) => planned[start + offset] === argument),
  );
  if (at === -1) throw new RangeError(`A jail has no ${sequence.join(" ")} to remove`);
  return [...planned.slice(0, at), ...by, ...planned.slice(at + sequence.length)];
}
