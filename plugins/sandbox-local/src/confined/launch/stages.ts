/** A folder or file that only the runner can reach, and the place where the session's user finds it. */
export interface RelocatedMount {
  readonly source: string;
  readonly place: string;
}

/** What has to happen between the runner and bubblewrap. */
export interface Stages {
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
