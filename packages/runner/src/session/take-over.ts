import type { AcceptedPlan } from "@ambit/core";
import { messageOf } from "@ambit/core";
import type { Log, SandboxBackend } from "@ambit/core/plugin";
import { tooManySecrets } from "../events/redaction/secrets.js";
import type { SessionRefresh } from "./secrets/refresher.js";
import { Session, sessionFingerprintOf } from "./session.js";
import { type SessionHolding, type SessionRecord, sessionRecordSchema } from "./session-keeper.js";

export interface TakeOverOptions {
  readonly plan: AcceptedPlan;
  readonly secrets: readonly string[];
  readonly log: Log;
  readonly closeMs: number;
  readonly refresh: SessionRefresh;
  readonly signal: AbortSignal;
  /** Adds a warning for the caller. */
  warn(message: string): void;
}

/**
 * Takes over a session's sandbox that another runner opened, if it was for the same plan. Undefined if there is
 * none, or if it can't be used: the caller is then warned, and the sandbox is removed.
 */
export async function takeOver(
  { fence, record: kept }: SessionHolding,
  options: TakeOverOptions,
): Promise<Session | undefined> {
  if (kept === undefined) return undefined;
  const { plan, secrets, log, closeMs, refresh, signal, warn } = options;
  const read = sessionRecordSchema.safeParse(kept);
  const why = read.success ? whyUnusable(read.data, plan, secrets) : "another version of Ambit kept it";
  if (why === undefined && read.success) {
    try {
      return await Session.open(plan, log, closeMs, signal, { fence, record: read.data, refresh });
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn({ error }, "a session's sandbox could not be taken over");
      warn(`is a session whose sandbox could not be taken over (${messageOf(error)}): its workspace is new`);
    }
  } else warn(`is a session that started again with a new workspace: ${why}`);
  if (read.success) await discard(read.data, fence, plan.sandbox.actor, log);
  return undefined;
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

/** Removes the sandbox of an ended session if it outlived its runner and its backend is loaded here. */
export async function discardSession(
  { fence, record }: SessionHolding,
  sandboxes: readonly SandboxBackend[],
  log: Log,
): Promise<void> {
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

/** Another boundary needs another sandbox, and one that failed has no boundary. Nothing is carried over. */
export function canGoOn(kept: Session, plan: AcceptedPlan, secrets: readonly string[]): boolean {
  return (
    kept.failure === undefined &&
    kept.fingerprint === sessionFingerprintOf(plan) &&
    kept.secrets.mayRemember(secrets)
  );
}
