import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { cookieName, type PreviewOrigin, ticketName } from "./forward.js";

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
  const [, expires, presented] = /^([0-9a-z]{1,11})\.([A-Za-z0-9_-]{43})$/.exec(ticket) ?? [];
  if (expires === undefined || presented === undefined) return undefined;
  if (!timingSafeEqual(Buffer.from(presented), Buffer.from(signature(key, scope, expires)))) return undefined;
  const expiresAt = Number.parseInt(expires, 36);
  return expiresAt > now ? expiresAt : undefined;
}

function signature(key: KeyObject, { label, port }: TicketScope, expires: string): string {
  // The purpose is part of it: the key signs the ids of interactions too.
  return createHmac("sha256", key).update(`ambit preview\n${label}\n${port}\n${expires}`).digest("base64url");
}

type Admission =
  /** @property path without the ticket. */
  | { readonly kind: "admitted"; readonly path: string; readonly expiresAt: number }
  /** A page's first request: the cookie takes the ticket's place, so that it stays in no address, history or referrer. */
  | { readonly kind: "redirect"; readonly location: string; readonly cookie: string }
  | { readonly kind: "refused"; readonly reason: string };

/** Whether a caller of a preview has a ticket for it: in the URL, or in the cookie that came of one. Pure. */
export function admitCaller(
  request: Pick<IncomingMessage, "method" | "url" | "headers">,
  preview: PreviewOrigin & TicketScope,
  key: KeyObject,
  now: number,
): Admission {
  const { headers, method = "GET" } = request;
  const { path, ticket } = splitTicket(request.url ?? "/");
  const isUpgrade = headers.upgrade !== undefined;
  if (ticket !== undefined) {
    const expiresAt = readTicket(key, preview, ticket, now);
    if (expiresAt === undefined) return refused;
    if (isUpgrade || (method !== "GET" && method !== "HEAD")) return { kind: "admitted", path, expiresAt };
    const seconds = Math.ceil((expiresAt - now) / 1_000);
    const secure = preview.origin.startsWith("https:") ? "; Secure" : "";
    const cookie = `${cookieName(preview)}=${ticket}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
    // The origin is part of it, since a path may begin with two slashes.
    return { kind: "redirect", location: preview.origin + path, cookie };
  }
  if (isFromElsewhere(request, preview, isUpgrade)) {
    return { kind: "refused", reason: "Another origin's page can't use this preview." };
  }
  for (const one of ticketsIn(headers.cookie, cookieName(preview))) {
    const expiresAt = readTicket(key, preview, one, now);
    if (expiresAt !== undefined) return { kind: "admitted", path, expiresAt };
  }
  return refused;
}

const refused = {
  kind: "refused",
  reason: "This preview needs its whole URL, and the URL of the latest run: earlier ones expire.",
} as const;

/** Links and typed addresses may lead here. A page of another origin, a sibling preview's too, gets nothing by the cookie. */
function isFromElsewhere(
  { headers, method = "GET" }: Pick<IncomingMessage, "method" | "headers">,
  { origin }: PreviewOrigin,
  isUpgrade: boolean,
): boolean {
  const site = headers["sec-fetch-site"];
  const isForeign = headers.origin !== undefined && headers.origin !== origin;
  if (isUpgrade) return isForeign;
  if (site === undefined) return isForeign;
  if (site === "same-origin" || site === "none") return false;
  return headers["sec-fetch-mode"] !== "navigate" || (method !== "GET" && method !== "HEAD");
}

function splitTicket(url: string): { readonly path: string; readonly ticket: string | undefined } {
  const at = url.indexOf("?");
  if (at === -1) return { path: url, ticket: undefined };
  const parts = url.slice(at + 1).split("&");
  const isTicket = (part: string) => part.startsWith(`${ticketName}=`);
  const others = parts.filter((part) => !isTicket(part));
  const path = url.slice(0, at) + (others.length === 0 ? "" : `?${others.join("&")}`);
  return { path, ticket: parts.find(isTicket)?.slice(ticketName.length + 1) };
}

/** A page of the preview can set more cookies of the same name, for other paths. A few are read. */
function ticketsIn(cookie = "", name: string): readonly string[] {
  return cookie
    .split(";")
    .map((one) => one.trim())
    .filter((one) => one.startsWith(`${name}=`))
    .slice(0, 4)
    .map((one) => one.slice(name.length + 1));
}
