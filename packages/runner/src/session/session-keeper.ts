import type { SessionUse } from "@ambit/core/plugin";
import { z } from "zod";

/**
 * What another runner needs to continue a session whose sandbox, or its files, outlive this one. It holds credentials: what
 * the output of the sandbox and the agent is redacted of those of earlier runs too. Stored encrypted.
 */
export const sessionRecordSchema = z.strictObject({
  /** The session of the sandbox's spec. */
  id: z.string(),
  /** The backend's name. */
  sandbox: z.string(),
  /** Key of the plan that the sandbox was opened for: it isn't used under another one. */
  fingerprint: z.string(),
  /** The backend's, for a sandbox that outlives its runner. */
  handover: z.string().optional(),
  /** The backend's, for files that outlive it. */
  remains: z.string().optional(),
  /** Whether its workspace wasn't filled yet. */
  isEmpty: z.boolean().default(false),
  conversation: z.strictObject({ harness: z.string(), id: z.string() }).optional(),
  userMessages: z.array(z.string()).readonly(),
  secrets: z.array(z.string()).readonly(),
});
export type SessionRecord = Readonly<z.output<typeof sessionRecordSchema>>;

/** Kept where a session's sandbox has ended, and its files are kept for the next runner. It holds no credential. */
export const suspendedSessionSchema = z.strictObject({
  /** The id of the kept files. */
  suspended: z.string(),
  /** The backend's name. */
  sandbox: z.string(),
  /** Key of the plan that its sandbox was opened for. */
  fingerprint: z.string(),
  hadVisibleCredentials: z.boolean(),
});
export type SuspendedSession = Readonly<z.output<typeof suspendedSessionSchema>>;

/** Kept where a session's files are lost, for the warning of the next run with its name. */
export const lostSessionSchema = z.strictObject({ lost: z.string() });
type LostSession = Readonly<z.output<typeof lostSessionSchema>>;

/** This runner's hold on a session. */
export interface SessionHolding {
  /** Increases with each runner that takes the session over. */
  readonly fence: number;
  /** The record of the last runner, unvalidated: any version may have written it. */
  readonly record?: unknown;
}

/** Keeps sessions beyond this process, for all runners that share conversations. */
export interface SessionKeeper {
  /** Undefined if the session isn't this runner's. */
  holding(name: SessionName): SessionHolding | undefined;
  /**
   * Stores the record if the session is still this runner's; returns whether it is. Undefined: nothing can be
   * continued.
   * @param when another runner may have it. Default: `idle`, while none of its runs is under way.
   */
  keep(
    name: SessionName,
    fence: number,
    record: SessionRecord | SuspendedSession | undefined,
    when?: "idle" | "owner_lost",
  ): Promise<boolean>;
  /** Stores its usage of models. @returns the usage over all runners. @throws StoreFailed */
  use(name: SessionName, use: SessionUse): Promise<SessionUse>;
  /** Called when its sandbox was closed here. @param lost for the next run of the name. Default: nothing was lost. */
  closed(name: SessionName, lost?: LostSession): Promise<void>;
  /** Called when its sandbox waits for another runner. */
  onClosed(name: SessionName): void;
}

/** A session as its project names it. */
export interface SessionName {
  readonly project: string | undefined;
  readonly session: string;
}

/** Undefined for the session of a single run. Sessions of two projects with the same id have different keys. */
export function keyOf(sessionId: string | undefined, project: string | undefined): string | undefined {
  if (sessionId === undefined || sessionId.trim() === "") return undefined;
  return JSON.stringify([project ?? null, sessionId]);
}

export function nameOf(key: string): SessionName {
  const [project, session]: [string | null, string] = JSON.parse(key);
  return { project: project ?? undefined, session };
}
