/** What can be taken out of a jail, each alone or with others; whatever isn't named stays as it is. */
export const mechanisms = [
  "network namespace",
  "pid namespace",
  "ipc namespace",
  "user namespace",
  "refusal of nested user namespaces",
  "system call filter",
  "guard of the first process",
  "allowlist",
  "server name check",
  "host header check",
  "hidden host files",
  "covered kernel tables",
  "mode of the workspace",
  "path rules",
  "files opened through no link",
  "sessions kept apart",
  "scratch of its own",
  "cleared environment",
  "closed descriptors",
  "end with the runner",
  "limits",
] as const;

export type Mechanism = (typeof mechanisms)[number];

/** What stands where something was taken out: never anything but decoys. */
export interface Decoys {
  /** Folders of the host that a jail shows where its host isn't hidden. */
  readonly folders: readonly string[];
  /** Variables that a jail has where its environment isn't cleared. */
  readonly environment: Readonly<Record<string, string>>;
}
