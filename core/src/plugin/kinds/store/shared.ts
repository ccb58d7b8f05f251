import type { OfProject } from "./run.js";

/** Where a session lives. */
export interface SessionPlace extends OfProject {
  readonly session: string;
  readonly replica: string;
  readonly sandbox: string;
}

export type SessionHold =
  | { readonly held: true }
  /** Another replica has it, which can be reached there. */
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

export interface NewDelivery extends OfProject {
  /** The message's id, the same with each attempt. */
  readonly id: string;
  readonly runId: string;
  readonly url: string;
  readonly event: string;
  /** As JSON. */
  readonly body: string;
}

export interface Delivery extends NewDelivery {
  readonly state: "pending" | "delivered" | "failed";
  readonly attempts: number;
  readonly error: string | undefined;
  readonly createdAt: number;
}
