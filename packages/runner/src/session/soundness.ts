import { setTimeout as delay } from "node:timers/promises";
import type { AmbitError } from "@ambit/core";
import { messageOf } from "@ambit/core";
import { lostBecause } from "./lost-files.js";
import type { Session } from "./session.js";

/** `PATH` of a sandbox without an image. */
const usualPath = "/usr/local/bin:/usr/bin:/bin";

/**
 * Whether the next run may have a session's sandbox. It is unsound when it reported a failure, when its processes can't be
 * ended, or when nothing can be started in it any more; how the run ended doesn't matter otherwise. Never rejects.
 *
 * @param failure of the run that had it.
 * @returns why it is unsound; undefined for a sound one
 */
export async function whyUnsound(
  session: Session,
  failure: AmbitError | undefined,
  limitMs: number,
): Promise<string | undefined> {
  if (session.failure !== undefined) return lostBecause.failed(session.failure);
  if (session.isClosed) return "its server ended it";
  // The processes of a kept agent go on.
  if (session.agent === undefined && !(await session.processes.end(limitMs)))
    return "processes in its sandbox could not be ended";
  if (failure?.code !== "sandbox_failed") return undefined;
  return await whyNothingStarts(session, limitMs);
}

/** The failure may be of another sandbox, such as git's, or of one call. */
async function whyNothingStarts({ sandbox }: Session, limitMs: number): Promise<string | undefined> {
  const given = new AbortController();
  const tried = async () => {
    const started = await sandbox.spawn({
      argv: ["true"],
      env: { PATH: sandbox.image?.searchPath ?? usualPath },
      role: "agent",
      signal: given.signal,
    });
    await started.exit;
    return undefined;
  };
  const late = delay(limitMs, "nothing started in its sandbox in time", { signal: given.signal });
  try {
    return await Promise.race([
      tried().catch((error: unknown) => `nothing can be started in its sandbox: ${messageOf(error)}`),
      late,
    ]);
  } finally {
    given.abort();
    await late.catch(() => undefined);
  }
}
