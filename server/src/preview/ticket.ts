import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";

/** What a ticket lets in to. */
export interface TicketScope {
  /** The preview's name, which no other port, session or run has. */
  readonly label: string;
  readonly port: number;
}

/** The word that lets a caller in to one preview: when it ends, in base 36, and a signature of all three. */
export function makeTicket(key: KeyObject, scope: TicketScope, expiresAt: number): string {
  const expires = expiresAt.toString(36);
  return `${expires}.${signature(key, scope, expires)}`;
}

/** When the ticket ends; undefined for one that was never made for this preview, or has ended. */
export function readTicket(
  key: KeyObject,
  scope: TicketScope,
  ticket: string,
  now: number,
): number | undefined {
  const [, expires, given] = /^([0-9a-z]{1,11})\.([A-Za-z0-9_-]{43})$/.exec(ticket) ?? [];
  if (expires === undefined || given === undefined) return undefined;
  if (!timingSafeEqual(Buffer.from(given), Buffer.from(signature(key, scope, expires)))) return undefined;
  const expiresAt = Number.parseInt(expires, 36);
  return expiresAt > now ? expiresAt : undefined;
}

function signature(key: KeyObject, { label, port }: TicketScope, expires: string): string {
  // The purpose is part of it: the key signs the ids of interactions too.
  return createHmac("sha256", key).update(`ambit preview\n${label}\n${port}\n${expires}`).digest("base64url");
}
