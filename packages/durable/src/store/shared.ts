import type { InteractionQuery, NewDelivery, OfProject } from "./run.js";
import type { DeliveryState } from "./states.js";

export interface StoredSessionName extends OfProject {
  readonly session: string;
}

/** Where a session lives. */
export interface SessionPlace extends StoredSessionName {
  readonly replica: string;
  readonly sandbox: string;
}

/** Fingerprints of the keys with which a replica protects what it stores. */
export interface ReplicaKeys {
  /** Of the one that it encrypts with. */
  readonly newest: string;
  /** Of all that it can read, the newest included. */
  readonly readable: readonly string[];
  /** Whether it joins although stored content was encrypted with a key that is lost. */
  readonly mayLoseContent: boolean;
}

/** When another replica may have a session: while none of its runs is under way, or only once its owner is lost. */
export type TakeoverTime = "idle" | "owner_lost";

export type SessionHold =
  | {
      readonly held: true;
      /** Increases with each owner. */
      readonly fence: number;
      /** What `keepSession` last stored, by any owner. */
      readonly handover?: string;
      /** True if its last owner ended without closing it, and kept nothing. */
      readonly isAbandoned?: boolean;
    }
  /** Another replica has it; the address is that replica's. */
  | { readonly held: false; readonly address: string };

export interface StoredSession extends OfProject {
  readonly session: string;
  readonly sandbox: string;
  readonly replica: string;
  /** Of that replica. */
  readonly address: string;
  readonly createdAt: number;
  readonly usedAt: number;
}

export interface Delivery extends NewDelivery, OfProject {
  readonly runId: string;
  readonly state: DeliveryState;
  /** Attempts so far, including one in progress. */
  readonly attempts: number;
  /** Of those, the attempts before it was last sent again on request. */
  readonly earlierAttempts: number;
  /** The HTTP status of the last attempt's answer. */
  readonly status: number | undefined;
  readonly error: string | undefined;
  readonly createdAt: number;
  /** When the next attempt may begin. */
  readonly dueAt: number;
}

export interface DeliveryQuery extends Omit<InteractionQuery, "state" | "session"> {
  readonly state?: DeliveryState;
}

export interface DeliveryOutcome {
  /** `pending`: another attempt follows. */
  readonly state: DeliveryState;
  /** Default 0: immediately. */
  readonly retryInMs?: number;
  readonly status?: number;
  readonly error?: string;
}
