import { gateDescriptor } from "./gate.js";

/** A folder or file that only the runner can reach, and the place where the session's user finds it. */
export interface RelocatedMount {
  readonly source: string;
  readonly place: string;
}

/** What has to happen between the runner and bubblewrap. */
export interface Stages {
  /** bubblewrap's whole command line. */
  readonly jail: readonly string[];
  /** Whether it waits to be put into the session's cgroups before anything else starts. */
  readonly waitsForGroups: boolean;
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

const wait = `read -r _ambit <&${gateDescriptor} || exit 125`;

/** The command that the runner starts. Pure. */
export function launchOf({ jail, waitsForGroups, relocatedMounts, user }: Stages): Launch {
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
      ...(waitsForGroups ? [wait] : []),
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
  const [program, ...args] = waitsForGroups ? ["/bin/sh", "-c", `${wait}\nexec "$@"`, "sh", ...jail] : jail;
  if (program === undefined) throw new RangeError("A jail needs a program to start");
  return { argv: [program, ...args], user };
}
