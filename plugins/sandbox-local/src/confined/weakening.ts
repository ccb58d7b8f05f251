import type { Ownership, PathMapping, SessionFiles } from "@ambit/backend-kit/safe-fs";
import type { Evidence } from "@ambit/core/plugin";
import type { EgressChecks } from "@ambit/egress/proxy";
import type { UserIdLease } from "../identity/user-ids.js";
import type { CommandLine } from "./launch/arguments.js";

/**
 * What is removed from a session's jails so that an attack works there: the control that makes the attack's failure in
 * a complete jail meaningful. It can't be configured, and `LocalSandbox` has no parameter for it: only
 * `@ambit/sandbox-local/testing` makes one, which only tests and `ambit verify` import.
 */
export interface Weakening {
  /** Changes bubblewrap's command lines. `given` numbers what `open` returned. */
  arguments(planned: readonly CommandLine[], given: readonly number[]): readonly CommandLine[];
  /** The program that starts bubblewrap, with its arguments; empty for none. */
  launcher(given: readonly number[]): readonly string[];
  /**
   * Opens descriptors for one launch, besides the jail's own, which closes them.
   *
   * @param paths of the host, of what is mounted onto itself in the workspace.
   */
  open(paths: readonly string[]): { readonly descriptors: readonly number[]; close(): void };
  /** Namespaces that are shared with the runner. */
  readonly shared: readonly ("ipc" | "pid")[];
  readonly seccomp: boolean;
  /** Whether each jail looks for the paths to mount in its workspace, instead of once for all that live. */
  readonly looksAnew: boolean;
  /** Whether the payload is kept out of its jail's first process. */
  readonly guardsFirst: boolean;
  /** A filter that replaces the runner's. */
  readonly seccompFile?: string;
  /** Whether a jail that differs from the plan is opened nevertheless. */
  readonly isJudged: boolean;
  /** Whether descriptors that the runner inherited are closed. */
  readonly closesDescriptors: boolean;
  /** Replaces the session's separate user id. */
  readonly lease?: () => Promise<UserIdLease>;
  /** Replaces the proxy's comparison of names. */
  readonly egressChecks: EgressChecks;
  /** Replaces file access that follows no links. */
  readonly files?: (mappings: readonly PathMapping[], owner: Ownership | undefined) => SessionFiles;
  /** Passed back to the caller that opened the sandbox. */
  readonly evidence: Evidence;
  /** Called when the session is closed, or couldn't be opened. */
  close(): Promise<void>;
}
