/** Paths and addresses inside a jail. They are the same in every one, so that none of the host's layout shows. */
export const inside = {
  workspace: "/workspace",
  agentHome: "/home/agent",
  toolHome: "/home/tool",
  scratch: "/tmp",
  /** The session's own unix socket, which leads to everything exposed and to the boundary's proxy. */
  channel: "/run/ambit/channel.sock",
  /** The jail's own unix socket, where its relay waits for connections from the runner. Only where ports are open to it. */
  inbound: "/run/ambit/inbound.sock",
  nodeProxy: "/run/ambit/node-proxy.cjs",
  relayProgram: "/run/ambit/relay",
  /** What programs trust if something was added to the host's authorities: those too, for programs that bring their own. */
  trust: { authority: "/run/ambit/authorities.pem", bundle: "/run/ambit/authorities.pem" },
  /** The program of a jail's first process. */
  shell: "/run/ambit/sh",
  /** Makes the mounts in the workspace. Only in a jail that has some. */
  bubblewrap: "/run/ambit/bwrap",
  hostName: "sandbox",
  user: "agent",
  /** The relay's address and port on the jail's own loopback. */
  channelAddress: "127.0.0.1",
  port: 3128,
  /** Every session's user inside, whichever user it is on the host. */
  uid: 1000,
} as const;

export const channelUrl = `http://${inside.channelAddress}:${inside.port}`;

/** A part of the host's system, mounted unchanged. */
export type SystemEntry =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string };

/** Something mounted over a path of the workspace: the path itself, or nothing. In order: a later mount wins. */
export interface WorkspaceMount {
  readonly kind: "write" | "read" | "hide-folder" | "hide-file";
  /** Relative to the workspace, and without links as long as no jail can exchange its parts. */
  readonly path: string;
}

/** A folder or file that only the runner can reach, and the place where the session's user finds it. */
export interface RelocatedMount {
  readonly source: string;
  readonly place: string;
}

/** A file or folder of the host's, read-only at `path`. */
export interface ShownPath {
  readonly source: string;
  readonly path: string;
}

/** Everything that decides what one jail can see and do. */
export interface Jail {
  readonly system: readonly SystemEntry[];
  /** The folder that replaces `/etc`, and the files mounted over it. */
  readonly etc: { readonly folder: string; readonly shown: readonly ShownPath[] };
  readonly requiredPaths: readonly ShownPath[];
  /** Folders covered by empty ones, since they lie inside a shown path. */
  readonly covered: readonly string[];
  /** Descriptor of the workspace; undefined without a workspace. */
  readonly workspace: { readonly descriptor: number; readonly writable: boolean } | undefined;
  readonly workspaceMounts: readonly WorkspaceMount[];
  /** Descriptor of the session's home for the agent; a tool's is scratch. */
  readonly agentHome: number | undefined;
  /** Bytes of each scratch file system: `/tmp`, `/dev/shm`, a tool's home. */
  readonly scratchBytes: number;
  /** The host's path of the program that the first process runs, shown at `inside.shell`. */
  readonly shell: string;
  /** The host's path of bubblewrap. */
  readonly bubblewrap: string;
  /** Files under `/run/ambit`, by their path there. */
  readonly channel: readonly { readonly source: string; readonly path: string; readonly socket: boolean }[];
  /** A separate loopback, or the host's network. */
  readonly network: "own" | "shared";
  /** Files in `/proc` that describe the host, if this kernel has them. */
  readonly coveredProc: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly descriptors: { readonly seccomp: number | undefined; readonly info: number };
}

/** Options of bubblewrap, without the program that it starts. Handed over by descriptor, never as arguments. */
export type CommandLine = readonly string[];

/**
 * The command lines of the bubblewraps that make a jail: each starts the next one, and the last one the program. Pure.
 *
 * bubblewrap before 0.12 follows links in the path that it mounts on, and the tree that it was started in is still at
 * `/oldroot` then (CVE-2026-87766). In the workspace, another jail of the session can exchange such a path at any time.
 * So what is mounted there is mounted by a second bubblewrap inside the first one's jail: its `/oldroot` is that jail,
 * and nothing of the host is left.
 */
export function bubblewrapArguments(jail: Jail): readonly [CommandLine, ...CommandLine[]] {
  if (jail.workspace === undefined || jail.workspaceMounts.length === 0) {
    return [[...isolation(jail), ...noNesting, ...contents(jail), ...ending(jail), ...infoOf(jail)]];
  }
  return [
    [
      ...isolation(jail),
      ...contents(jail),
      ...["--ro-bind", jail.bubblewrap, inside.bubblewrap],
      // No variable of the program's: one such as LD_PRELOAD would change the second bubblewrap.
      ...[...lock, "--clearenv", "--chdir", "/", ...infoOf(jail)],
    ],
    [
      ...["--unshare-user", ...noNesting, ...noCapabilities],
      ...["--dev-bind", "/", "/", ...workspaceMounts(jail), ...ending(jail)],
    ],
  ];
}

/** Only of the last bubblewrap: another one needs a user namespace itself. */
const noNesting: CommandLine = ["--disable-userns"];
const noCapabilities: CommandLine = ["--cap-drop", "ALL"];
/** Until then the root is memory without a limit. */
const lock: CommandLine = ["--remount-ro", "/"];

const infoOf = ({ descriptors }: Jail): CommandLine => ["--info-fd", String(descriptors.info)];

function contents(jail: Jail): CommandLine {
  return [
    ...jail.system.flatMap(systemEntry),
    ...["--ro-bind", jail.etc.folder, "/etc"],
    ...jail.etc.shown.flatMap(({ source, path }) => ["--ro-bind", source, path]),
    ...["--dev", "/dev", "--proc", "/proc"],
    ...jail.coveredProc.flatMap((path) => ["--ro-bind", "/dev/null", path]),
    ...["--perms", "1777", ...tmpfs(inside.scratch, jail.scratchBytes)],
    ...["--perms", "1777", ...tmpfs("/dev/shm", jail.scratchBytes)],
    ...["--remount-ro", "/dev"],
    ...["--dir", "/var", "--symlink", "/tmp", "/var/tmp", "--dir", "/run"],
    ...jail.requiredPaths.flatMap(({ source, path }) => ["--ro-bind", source, path]),
    ...jail.covered.flatMap((path) => [...tmpfs(path, 4096), "--remount-ro", path]),
    ...homes(jail),
    ...workspace(jail),
    ...["--ro-bind", jail.shell, inside.shell],
    ...jail.channel.flatMap(({ source, path, socket }) => [socket ? "--bind" : "--ro-bind", source, path]),
  ];
}

/** The end of the last command line: all mounts are made. */
function ending(jail: Jail): CommandLine {
  return [
    ...lock,
    ...[
      "--clearenv",
      ...Object.entries(jail.environment).flatMap(([name, value]) => ["--setenv", name, value]),
    ],
    ...["--chdir", jail.cwd],
    ...(jail.descriptors.seccomp === undefined ? [] : ["--seccomp", String(jail.descriptors.seccomp)]),
  ];
}

function isolation(jail: Jail): string[] {
  return [
    ...["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"],
    ...(jail.network === "own" ? ["--unshare-net"] : []),
    ...noCapabilities,
    ...["--uid", String(inside.uid), "--gid", String(inside.uid), "--hostname", inside.hostName],
    ...["--new-session", "--die-with-parent", "--as-pid-1"],
  ];
}

function systemEntry(entry: SystemEntry): string[] {
  return entry.kind === "folder"
    ? ["--ro-bind", entry.path, entry.path]
    : ["--symlink", entry.target, entry.path];
}

function homes(jail: Jail): string[] {
  return jail.agentHome === undefined
    ? tmpfs(inside.toolHome, jail.scratchBytes)
    : ["--bind-fd", String(jail.agentHome), inside.agentHome];
}

function workspace({ workspace: shown, workspaceMounts: mounts, scratchBytes }: Jail): string[] {
  if (shown === undefined) return tmpfs(inside.workspace, scratchBytes);
  // A path in it that can be written is a part of this mount: no other could be.
  const writable = shown.writable || mounts.some(({ kind }) => kind === "write");
  return [writable ? "--bind-fd" : "--ro-bind-fd", String(shown.descriptor), inside.workspace];
}

function workspaceMounts({ workspace: shown, workspaceMounts: mounts }: Jail): CommandLine {
  return [
    ...(shown?.writable === false ? ["--ro-bind", inside.workspace, inside.workspace] : []),
    ...mounts.flatMap(workspaceMount),
  ];
}

function workspaceMount(mount: WorkspaceMount): string[] {
  const path = `${inside.workspace}/${mount.path}`;
  switch (mount.kind) {
    case "write":
      return ["--bind", path, path];
    case "read":
      return ["--ro-bind", path, path];
    case "hide-folder":
      return [...tmpfs(path, 4096), "--remount-ro", path];
    case "hide-file":
      return ["--ro-bind", "/dev/null", path];
  }
}

function tmpfs(path: string, bytes: number): string[] {
  return ["--size", String(bytes), "--tmpfs", path];
}
