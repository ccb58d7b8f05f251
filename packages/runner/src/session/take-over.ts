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
 * Takes over a session's sandbox that another runner opened, if it was for the same plan. Where it can't be used, it is
 * removed.
 */
export async function takeOver(
  { fence, record: kept }: SessionHolding,
  options: TakeOverOptions,
): Promise<Session | { readonly lost: string }> {
  const { plan, secrets, log, closeMs, refresh, signal } = options;
  const read = sessionRecordSchema.safeParse(kept);
  let why = read.success ? whyUnusable(read.data, plan, secrets) : "another version of Ambit kept it";
  if (why === undefined && read.success) {
    try {
      return await Session.open(plan, log, closeMs, signal, { fence, record: read.data, refresh });
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn({ error }, "a session's sandbox could not be taken over");
      why = `its sandbox could not be taken over (${messageOf(error)})`;
    }
  }
  if (read.success) await discard(read.data, fence, plan.sandbox.actor, log);
  return { lost: why ?? "another version of Ambit kept it" };
}

function whyUnusable(
  record: SessionRecord,
  plan: AcceptedPlan,
  secrets: readonly string[],
): string | undefined {
  const { sandbox } = plan;
  if (record.sandbox !== sandbox.actor.name || sandbox.actor.takeover === undefined)
    return `its sandbox was on ${record.sandbox}`;
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
  { id, sandbox, handover }: SessionRecord,
  fence: number,
  actor: SandboxBackend,
  log: Log,
): Promise<void> {
  if (actor.name !== sandbox) return;
  await actor.takeover?.discard({ id, fence, log }, handover).catch((error: unknown) => {
    log.warn({ error }, "a session's earlier sandbox could not be removed");
  });
}
