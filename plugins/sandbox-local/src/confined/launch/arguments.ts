import { inside } from "./inside.js";

/** A part of the host's system, mounted unchanged. */
export type SystemEntry =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string };

/**
 * Something mounted over a path of the workspace, by an open descriptor if it has one. In order: a later mount wins.
 */
export type WorkspaceMount =
  | { readonly kind: "write" | "read"; readonly path: string; readonly descriptor: number }
  | { readonly kind: "hide-folder" | "hide-file"; readonly path: string };

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

/** The whole command line of bubblewrap up to the program. Pure; handed over by descriptor, never as arguments. */
export function bubblewrapArguments(jail: Jail): readonly string[] {
  return [
    ...isolation(jail),
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
    // Last: until then the root is memory without a limit.
    ...["--remount-ro", "/"],
    ...[
      "--clearenv",
      ...Object.entries(jail.environment).flatMap(([name, value]) => ["--setenv", name, value]),
    ],
    ...["--chdir", jail.cwd, "--info-fd", String(jail.descriptors.info)],
    ...(jail.descriptors.seccomp === undefined ? [] : ["--seccomp", String(jail.descriptors.seccomp)]),
  ];
}

function isolation(jail: Jail): string[] {
  return [
    ...["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"],
    ...(jail.network === "own" ? ["--unshare-net"] : []),
    ...["--disable-userns", "--cap-drop", "ALL"],
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

function workspace(jail: Jail): string[] {
  if (jail.workspace === undefined) return tmpfs(inside.workspace, jail.scratchBytes);
  const { descriptor, writable } = jail.workspace;
  return [
    ...[writable ? "--bind-fd" : "--ro-bind-fd", String(descriptor), inside.workspace],
    ...jail.workspaceMounts.flatMap((mount) => workspaceMount(mount)),
  ];
}

function workspaceMount(mount: WorkspaceMount): string[] {
  const path = `${inside.workspace}/${mount.path}`;
  switch (mount.kind) {
    case "write":
      return ["--bind-fd", String(mount.descriptor), path];
    case "read":
      return ["--ro-bind-fd", String(mount.descriptor), path];
    case "hide-folder":
      return [...tmpfs(path, 4096), "--remount-ro", path];
    case "hide-file":
      return ["--ro-bind", "/dev/null", path];
  }
}

function tmpfs(path: string, bytes: number): string[] {
  return ["--size", String(bytes), "--tmpfs", path];
}
