import type { SessionUse } from "@ambit/core/plugin";
import { z } from "zod";
import type { SessionName } from "./session-name.js";

/**
 * What another runner needs to continue a session whose sandbox outlives this one. It holds credentials: what the
 * sandbox and the agent say is redacted of those of earlier runs too. Kept encrypted.
 */
export const sessionRecordSchema = z.strictObject({
  /** Of the sandbox's spec. */
  id: z.string(),
  /** The backend's name. */
  sandbox: z.string(),
  /** Of the plan that the sandbox was opened for: under another one it isn't used. */
  fingerprint: z.string(),
  /** The backend's. */
  handover: z.string(),
  conversation: z.strictObject({ harness: z.string(), id: z.string() }).optional(),
  said: z.array(z.string()).readonly(),
  secrets: z.array(z.string()).readonly(),
});
export type SessionRecord = Readonly<z.output<typeof sessionRecordSchema>>;

/** This runner's hold on a session. */
export interface SessionHolding {
  /** Grows with each runner that has the session. */
  readonly fence: number;
  /** What the last one kept; as it was kept, by whichever version. */
  readonly record?: unknown;
}

/** Keeps sessions beyond this process, for all runners that share conversations. */
export interface SessionKeeper {
  /** Undefined where the session isn't this runner's. */
  holding(name: SessionName): SessionHolding | undefined;
  /** Whether the session is still this runner's, and the record is kept. Undefined: there is nothing to go on with. */
  keep(name: SessionName, fence: number, record: SessionRecord | undefined): Promise<boolean>;
  /** Keeps what it has used of its models. @returns what all runners have counted. @throws StoreFailed */
  use(name: SessionName, use: SessionUse): Promise<SessionUse>;
  /** Its sandbox was closed here. */
  closed(name: SessionName): Promise<void>;
  /** Its sandbox waits for another runner. */
  left(name: SessionName): void;
}
