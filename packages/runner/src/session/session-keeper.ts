import type { SessionUse } from "@ambit/core/plugin";
import { z } from "zod";
import type { SessionName } from "./session-name.js";

/**
 * What another runner needs to continue a session whose sandbox outlives this one. It holds credentials: what the
 * output of the sandbox and the agent is redacted of those of earlier runs too. Stored encrypted.
 */
export const sessionRecordSchema = z.strictObject({
  /** The session of the sandbox's spec. */
  id: z.string(),
  /** The backend's name. */
  sandbox: z.string(),
  /** Key of the plan that the sandbox was opened for: it isn't used under another one. */
  fingerprint: z.string(),
  /** The backend's. */
  handover: z.string(),
  conversation: z.strictObject({ harness: z.string(), id: z.string() }).optional(),
  userMessages: z.array(z.string()).readonly(),
  secrets: z.array(z.string()).readonly(),
});
export type SessionRecord = Readonly<z.output<typeof sessionRecordSchema>>;

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
   */
  keep(name: SessionName, fence: number, record: SessionRecord | undefined): Promise<boolean>;
  /** Stores its usage of models. @returns the usage over all runners. @throws StoreFailed */
  use(name: SessionName, use: SessionUse): Promise<SessionUse>;
  /** Called when its sandbox was closed here. */
  closed(name: SessionName): Promise<void>;
  /** Called when its sandbox waits for another runner. */
  onClosed(name: SessionName): void;
}
