import type { Ownership, PathMapping, SessionFiles } from "@ambit/backend-kit/safe-fs";
import type { Evidence } from "@ambit/core/plugin";
import type { EgressChecks } from "@ambit/egress/proxy";
import type { UserIdLease } from "../identity/user-ids.js";

/**
 * What is taken out of a session's jails so that an attack works there: the control beside which its failure in a whole
 * jail proves something. Nothing configures this, and `LocalSandbox` has no place for it: only
 * `@ambit/sandbox-local/testing` makes one, which only tests and `ambit verify` import.
 */
export interface Weakening {
  /** Changes bubblewrap's command line. `given` numbers what `descriptors` holds. */
  arguments(planned: readonly string[], given: readonly number[]): readonly string[];
  /** What starts bubblewrap, with its arguments; empty for nothing. */
  launcher(given: readonly number[]): readonly string[];
  /** Open descriptors for the launcher, besides the jail's own. */
  readonly descriptors: readonly number[];
  /** Namespaces that stay the runner's. */
  readonly shared: readonly ("ipc" | "pid")[];
  readonly seccomp: boolean;
  /** Whether the payload is kept out of its jail's first process. */
  readonly guardsFirst: boolean;
  /** A filter in place of the runner's. */
  readonly seccompFile?: string;
  /** Whether a jail that isn't as planned is opened all the same. */
  readonly isJudged: boolean;
  /** Whether descriptors that the runner inherited are closed. */
  readonly closesDescriptors: boolean;
  /** In place of a user id of its own. */
  readonly lease?: () => Promise<UserIdLease>;
  /** In place of the proxy's comparison of names. */
  readonly egressChecks: EgressChecks;
  /** In place of files that are opened through no link. */
  readonly files?: (mappings: readonly PathMapping[], owner: Ownership | undefined) => SessionFiles;
  /** For whoever opened it. */
  readonly evidence: Evidence;
  /** Called when the session is closed, or wasn't opened. */
  close(): Promise<void>;
}
