import type { LoopbackForward } from "../../claims.js";
import { inside } from "./inside.js";

/** The descriptor that connects the runner with a jail's first program; closed before the payload starts. */
export const gateDescriptor = 3;

/** A jail's own way out, by its relay: `native/relay.c`. */
export interface WayOut {
  readonly forwards: readonly LoopbackForward[];
  /** Whether it also lets the runner's connections in. */
  readonly isInbound: boolean;
}

/**
 * The jail's first program, which is process 1 of its pid namespace. When the payload ends, everything left in the jail
 * ends with process 1, and bubblewrap reaps it. (bubblewrap's own process 1 would outlive bubblewrap if the runner is a
 * container's first process and doesn't reap orphans.)
 *
 * Its child reports its process number in the jail (so that the runner can inspect it while the relay starts), then
 * that everything is up, and becomes the payload only when the runner says so. A runner that died meanwhile never does.
 * The runner then closes its end: the descriptor that the first process keeps leads nowhere.
 */
export function gateScript(wayOut: WayOut | undefined): string {
  return [
    // The runner's mark, visible on the host only.
    "shift",
    'command -v -- "$1" >/dev/null || { echo missing >&3; exit 127; }',
    // A shell reports a child that ended by a signal; standard error belongs to the payload.
    "exec 4>&2 2>/dev/null",
    "(",
    "exec 2>&4 4>&-",
    "read -r _ambit _ambit_rest </proc/self/stat",
    'echo "$_ambit" >&3',
    ...(wayOut === undefined ? [] : [startRelay(wayOut)]),
    "echo up >&3",
    "read -r _ambit <&3 || exit 125",
    "exec 3>&-",
    'exec "$@"',
    ")",
    "exit $?",
  ].join("\n");
}

/**
 * Starts the relay in a shell of its own, so that the payload gets no child that it didn't start. The relay is a static program
 * that reads no variable. It says `up` on descriptor 4, and closes that, once all its ports listen.
 */
function startRelay({ forwards, isInbound }: WayOut): string {
  const targets = [...forwards.map(authority), ...(isInbound ? ["inbound"] : [])];
  const command = [inside.relayProgram, ...targets].join(" ");
  return `[ "$(exec </dev/null 3>&-; ${command} 4>&1 >/dev/null 2>&1 &)" = up ] || { echo relay >&3; exit 126; }`;
}

function authority({ address, port }: LoopbackForward): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** A folder or file that only the runner can reach, and the place where the session's user finds it. */
export interface RelocatedMount {
  readonly source: string;
  readonly place: string;
}

/** What has to happen between the runner and bubblewrap. */
interface Stages {
  /** bubblewrap's whole command line. */
  readonly jail: readonly string[];
  /** Descriptors of the session's cgroups, which it adds itself to before anything else starts; one digit each. */
  readonly groups: readonly number[];
  /** Mounts that only this process and its children see. Needs root. */
  readonly relocatedMounts: readonly RelocatedMount[];
  /**
   * The session's user, switched to before bubblewrap starts: as uid 0, bubblewrap isn't a sandbox. Undefined if the
   * runner is that user already.
   */
  readonly user: { readonly uid: number; readonly gid: number } | undefined;
}

/** A program to start, and its user. */
export interface Launch {
  readonly argv: readonly [program: string, ...args: string[]];
  readonly user: Stages["user"];
}

/** A shell that fails to write says why. The descriptors are closed: nothing of the jail has them. */
const joining = (groups: readonly number[]) => [
  ...groups.map((group) => `echo 0 >&${group} || exit 125`),
  `exec ${groups.map((group) => `${group}>&-`).join(" ")}`,
];

/** The command that the runner starts. Pure. */
export function launchOf({ jail, groups, relocatedMounts, user }: Stages): Launch {
  if (relocatedMounts.length > 0 && user !== undefined) {
    const { uid, gid } = user;
    const drop = [
      "setpriv",
      "--reuid",
      String(uid),
      "--regid",
      String(gid),
      "--clear-groups",
      "--no-new-privs",
      "--",
    ];
    const script = [
      ...(groups.length > 0 ? joining(groups) : []),
      'while [ "$1" != "--" ]; do mount --bind -- "$1" "$2" || exit 124; shift 2; done; shift',
      'exec "$@"',
    ].join("\n");
    const mounts = relocatedMounts.flatMap(({ source, place }) => [source, place]);
    const shell = ["/bin/sh", "-c", script, "sh", ...mounts, "--"];
    return {
      argv: ["unshare", "--mount", "--propagation", "private", "--", ...shell, ...drop, ...jail],
      user: undefined,
    };
  }
  const joined = () => ["/bin/sh", "-c", [...joining(groups), 'exec "$@"'].join("\n"), "sh", ...jail];
  const [program, ...args] = groups.length > 0 ? joined() : jail;
  if (program === undefined) throw new RangeError("A jail needs a program to start");
  return { argv: [program, ...args], user };
}
