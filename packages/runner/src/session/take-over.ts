import type { AcceptedPlan } from "@ambit/core";
import { messageOf } from "@ambit/core";
import type { Log, SandboxBackend } from "@ambit/core/plugin";
import { tooManySecrets } from "../events/redaction/secrets.js";
import type { WorkspaceService } from "../operator.js";
import type { SessionRefresh } from "./secrets/refresher.js";
import { Session, sessionFingerprintOf } from "./session.js";
import {
  type SessionHolding,
  type SessionRecord,
  sessionRecordSchema,
  suspendedSessionSchema,
} from "./session-keeper.js";

export interface TakeOverOptions {
  readonly plan: AcceptedPlan;
  readonly secrets: readonly string[];
  readonly log: Log;
  readonly closeMs: number;
  readonly refresh: SessionRefresh;
  readonly signal: AbortSignal;
}

/**
 * Continues a session's sandbox that another runner opened, or the files of one that ended with it, if it was for the same
 * plan. Where it can't be used, it is removed.
 * @returns why the session's files are lost, undefined if it had none yet
 */
export async function takeOver(
  { fence, record: kept }: SessionHolding,
  options: TakeOverOptions,
): Promise<Session | { readonly lost: string | undefined }> {
  const { plan, secrets, log, closeMs, refresh, signal } = options;
  const read = sessionRecordSchema.safeParse(kept);
  // Its first run ended with its runner before there was anything to lose.
  const isEmpty = read.success && read.data.isEmpty;
  let why = read.success ? whyUnusable(read.data, plan, secrets) : "another version of Ambit kept it";
  if (why === undefined && read.success && !isEmpty) {
    try {
      return await Session.open(plan, log, closeMs, signal, { fence, record: read.data, refresh });
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn({ error }, "a session's sandbox could not be taken over");
      const what =
        read.data.handover === undefined
          ? "its server ended without closing it, and its files"
          : "its sandbox";
      why = `${what} could not be taken over (${messageOf(error)})`;
    }
  }
  if (read.success) await discard(read.data, fence, plan.sandbox.actor, log);
  return { lost: isEmpty ? undefined : (why ?? "another version of Ambit kept it") };
}

function whyUnusable(
  record: SessionRecord,
  plan: AcceptedPlan,
  secrets: readonly string[],
): string | undefined {
  const { sandbox } = plan;
  const isOffered = record.handover === undefined || sandbox.actor.takeover !== undefined;
  if (record.sandbox !== sandbox.actor.name || !isOffered) return `its sandbox was on ${record.sandbox}`;
  if (record.fingerprint !== sessionFingerprintOf(plan))
    return "its sandbox was opened under another boundary, for another agent, or with other hidden credentials";
  if (tooManySecrets(new Set([...record.secrets, ...secrets])) !== undefined)
    return "its runs have had more credentials than are kept apart";
  return undefined;
}

/** Removes what is left of an ended session: its sandbox if its backend is loaded here, or its files. */
export async function discardSession(
  { fence, record }: SessionHolding,
  project: string | undefined,
  sandboxes: readonly SandboxBackend[],
  suspended: WorkspaceService["suspended"],
  log: Log,
): Promise<void> {
  const kept = suspendedSessionSchema.safeParse(record);
  if (kept.success) {
    await suspended?.delete(kept.data.suspended, project).catch((error: unknown) => {
      log.warn({ error }, "the kept files of an ended session could not be deleted");
    });
    return;
  }
  const read = sessionRecordSchema.safeParse(record);
  for (const actor of read.success ? sandboxes : [])
    if (read.success) await discard(read.data, fence, actor, log);
}

/** What can't be removed is left to the backend's reaper. */
async function discard(
  { id, sandbox, handover, remains }: SessionRecord,
  fence: number,
  actor: SandboxBackend,
  log: Log,
): Promise<void> {
  if (actor.name !== sandbox) return;
  try {
    if (handover !== undefined) await actor.takeover?.discard({ id, fence, log }, handover);
    if (remains !== undefined) await actor.discardRemains?.(remains);
  } catch (error) {
    log.warn({ error }, "a session's earlier sandbox could not be removed");
  }
}
