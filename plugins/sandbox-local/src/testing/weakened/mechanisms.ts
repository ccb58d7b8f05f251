/** Mechanisms that can be removed from a jail, alone or with others; all others stay unchanged. */
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
  "workspace mode",
  "path rules",
  "rules for all jails that live",
  "second bubblewrap",
  "no-follow file access",
  "session separation",
  "private scratch",
  "cleared environment",
  "closed descriptors",
  "exit with the runner",
  "limits",
] as const;

export type Mechanism = (typeof mechanisms)[number];

/** What removed mechanisms are replaced with: only decoys. */
export interface Decoys {
  /** Folders of the host that a jail shows if the host isn't hidden. */
  readonly folders: readonly string[];
  /** Variables that a jail has if its environment isn't cleared. */
  readonly environment: Readonly<Record<string, string>>;
}
