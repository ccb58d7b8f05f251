import { dirname } from "node:path";
import { type LimitHits, type ResourceLimits, SandboxFailed } from "@ambit/core/plugin";
import { markArgument } from "../process/marked-processes.js";

/** Details of a session that a caller must not learn. */
export interface Concealed {
  /** The session's folder on the host. */
  readonly folder: string;
  readonly mark: string;
}

/** bubblewrap's own message about a failed start, without the host's folders and the runner's mark. Pure. */
export function withoutHost(words: string, { folder, mark }: Concealed): string {
  return words
    .replaceAll(markArgument(mark), "sandbox")
    .replaceAll(folder, "(the session's folder)")
    .replaceAll(dirname(folder), "(the runner's folder)")
    .replaceAll(dirname(dirname(dirname(folder))), "(the data folder)");
}

/**
 * The session limit that kept a jail from starting, if one did: a failure inside then has no other reason. Pure.
 *
 * @param before how often each limit was reached before the start.
 */
export function limitReached(
  program: string,
  limits: ResourceLimits,
  before: LimitHits,
  after: LimitHits,
  cause: unknown,
): SandboxFailed | undefined {
  const reached =
    after.processes > before.processes
      ? `limit of ${limits.processes} processes (resources.processes)`
      : after.memory > before.memory
        ? `limit of ${limits.memoryMb} MiB (resources.memoryMb)`
        : undefined;
  if (reached === undefined) return undefined;
  return new SandboxFailed(
    `${program} can't be started: the session's ${reached} is reached, by all its processes together and three or four of each jail's own: raise it, or start fewer at once`,
    { cause, concerns: "session" },
  );
}
