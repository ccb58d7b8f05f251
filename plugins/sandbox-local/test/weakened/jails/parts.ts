import { inside } from "../../../dist/confined/arguments.js";

/** One protective option of a jail's command line, and the command line without it. */
export interface JailPart {
  /** In bubblewrap's terms, without what differs between sessions: `--ro-bind /usr`. */
  readonly name: string;
  /** The command line without it. */
  readonly rest: readonly string[];
}

/** How many arguments each option has that the planner uses. */
const given: Readonly<Record<string, number>> = {
  "--unshare-user": 0,
  "--unshare-ipc": 0,
  "--unshare-pid": 0,
  "--unshare-uts": 0,
  "--unshare-net": 0,
  "--unshare-cgroup-try": 0,
  "--unshare-cgroup": 0,
  "--disable-userns": 0,
  "--cap-drop": 1,
  "--new-session": 0,
  "--die-with-parent": 0,
  "--as-pid-1": 0,
  "--clearenv": 0,
  "--uid": 1,
  "--gid": 1,
  "--hostname": 1,
  "--chdir": 1,
  "--info-fd": 1,
  "--seccomp": 1,
  "--dir": 1,
  "--bind": 2,
  "--ro-bind": 2,
  "--dev-bind": 2,
  "--bind-fd": 2,
  "--ro-bind-fd": 2,
  "--symlink": 2,
  "--setenv": 2,
  "--dev": 1,
  "--proc": 1,
  "--size": 1,
  "--perms": 1,
  "--userns": 1,
  "--tmpfs": 1,
  "--remount-ro": 1,
  "--chmod": 2,
  "--file": 2,
  "--bind-data": 2,
  "--ro-bind-data": 2,
  "--remount-rw": 1,
};

/** Options that give a jail something, or tell bubblewrap where things are: they protect nothing. */
const gives = new Set([
  ...[
    "--bind",
    "--dev-bind",
    "--bind-fd",
    "--symlink",
    "--setenv",
    "--dir",
    "--userns",
    "--chdir",
    "--info-fd",
    "--tmpfs",
  ],
  ...["--perms", "--chmod", "--file", "--bind-data"],
]);

/** Copies of the session, owned by root: writing to them changes only what its own programs trust. */
const sessionsOwn: ReadonlySet<string> = new Set(Object.values(inside.trust));

/** The command line without a part, or unchanged if it doesn't have that part. */
export function withoutPart(planned: readonly string[], name: string): readonly string[] {
  return jailParts(planned).find((part) => part.name === name)?.rest ?? planned;
}

interface Option {
  readonly words: readonly string[];
  readonly at: number;
}

/**
 * Every protective part of bubblewrap's command line, each removed alone: a flag is left out; a read-only mount becomes
 * writable; a new mount becomes the host's; a limit is lifted. Pure.
 *
 * @throws RangeError for an option that isn't known here: define how to remove it.
 */
export function jailParts(planned: readonly string[]): readonly JailPart[] {
  const options = optionsOf(planned);
  const replaced = ({ words, at }: Option, by: readonly string[]) => [
    ...planned.slice(0, at),
    ...by,
    ...planned.slice(at + words.length),
  ];
  const lockedLater = (option: Option, path: string | undefined) =>
    options.some(
      ({ words: [name, target], at }) => name === "--remount-ro" && target === path && at > option.at,
    );
  return options.flatMap((option, index): JailPart[] => {
    const [name = "", first = "", second = ""] = option.words;
    if (gives.has(name) || sessionsOwn.has(second)) return [];
    // Nothing reaches what is below the later mount.
    if (
      name === "--ro-bind" &&
      options.some(({ words: [over, path], at }) => over === "--tmpfs" && path === second && at > option.at)
    )
      return [];
    if (name === "--ro-bind" && first === "/dev/null") {
      return [{ name: `cover of ${second}`, rest: replaced(option, []) }];
    }
    if (name === "--ro-bind" || name === "--ro-bind-fd") {
      const by = [name.replace("ro-", ""), first, second];
      return [{ name: `read-only ${second}`, rest: replaced(option, by) }];
    }
    if (name === "--remount-ro") return [{ name: `read-only ${first}`, rest: replaced(option, []) }];
    if (name === "--size") {
      const path = options[index + 1]?.words[1];
      // A mount that can't be written has no size to limit.
      if (lockedLater(option, path)) return [];
      return [{ name: `size of ${path}`, rest: replaced(option, []) }];
    }
    if (name === "--proc")
      return [{ name: "own /proc", rest: replaced(option, ["--ro-bind", first, first]) }];
    if (name === "--dev") {
      const open = replaced(option, ["--dev-bind", first, first]);
      return [{ name: "own /dev", rest: open }];
    }
    if (name === "--cap-drop") return [{ name: "--cap-drop ALL", rest: replaced(option, []) }];
    return [{ name, rest: replaced(option, []) }];
  });
}

function optionsOf(planned: readonly string[]): readonly Option[] {
  const options: Option[] = [];
  for (let at = 0; at < planned.length; ) {
    const name = planned[at] ?? "";
    const count = given[name];
    if (count === undefined) throw new RangeError(`There is no definition of a jail without ${name}`);
    options.push({ words: planned.slice(at, at + 1 + count), at });
    at += 1 + count;
  }
  return options;
}
