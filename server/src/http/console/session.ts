import { createHash, createHmac, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto";
import { AtCapacity } from "@ambit/core";
import { z } from "zod";

/** `viewer` reads · `answerer` also answers questions · `operator` may do what its token may. */
const roles = ["viewer", "answerer", "operator"] as const;
export const roleSchema = z.enum(roles);
export type Role = z.infer<typeof roleSchema>;

/** Who signed in, until when. */
export interface ConsoleSession {
  /** The SHA-256 of the token that was exchanged, in hex: another token in its place ends the session. */
  readonly token: string;
  readonly role: Role;
  /** The person, as the maker of the link says. */
  readonly user?: string | undefined;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

const sessionSchema = z.strictObject({
  token: z.string(),
  role: roleSchema,
  user: z.string().optional(),
  expiresAt: z.number(),
  nonce: z.string(),
});

/** Characters of a cookie that is read. */
const maxLength = 1_024;

/** A session as a cookie holds it, signed: every replica with this key reads it, and none stores it. */
export function sealSession(key: KeyObject, session: ConsoleSession): string {
  const nonce = randomBytes(16).toString("base64url");
  const content = Buffer.from(JSON.stringify({ ...session, nonce })).toString("base64url");
  return `${content}.${signature(key, "session", content)}`;
}

/** Undefined for a cookie that this key didn't sign, or whose session has ended. */
export function readSession(key: KeyObject, cookie: string, now: number): ConsoleSession | undefined {
  if (cookie.length > maxLength) return undefined;
  const [content = "", signed = ""] = cookie.split(".");
  if (!isSame(signed, signature(key, "session", content))) return undefined;
  const { nonce: _nonce, ...session } = sessionSchema.parse(
    JSON.parse(Buffer.from(content, "base64url").toString()),
  );
  return session.expiresAt > now ? session : undefined;
}

/**
 * What the page sends as a header with each request of the session. A cookie is sent for pages of every port of a host; this
 * value is kept by one origin alone.
 */
export function proofOf(key: KeyObject, cookie: string): string {
  return signature(key, "proof", cookie);
}

export function isSame(presented: string, expected: string): boolean {
  const [one, other] = [Buffer.from(presented), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

function signature(key: KeyObject, purpose: string, content: string): string {
  // The purpose is part of it: the key signs the ids of interactions too.
  return createHmac("sha256", key).update(`ambit console ${purpose}\n${content}`).digest("base64url");
}

/** Whether a role may send this request. Pure. */
export function mayCall(role: Role, method: string, path: string): boolean {
  if (role === "operator" || method === "GET" || method === "HEAD") return true;
  // A plan starts nothing.
  if (path === "/plan") return true;
  return role === "answerer" && /^\/runs\/[^/]+\/interactions\/[^/]+$/.test(path);
}

/** The lower of two roles. Pure. */
export const lowerRole = (one: Role, other: Role): Role =>
  roles[Math.min(roles.indexOf(one), roles.indexOf(other))] ?? "viewer";

/** Milliseconds that a link may be used. */
export const linkMs = 5 * 60_000;

/** Links that wait to be used. */
const maxLinks = 1_000;

/** One-time codes, each exchanged for a session once. A process's own: another replica doesn't know them. */
export class SignInLinks<Session> {
  readonly #sessions = new Map<string, { readonly session: Session; readonly expiresAt: number }>();

  /** @throws AtCapacity */
  add(session: Session, now: number): string {
    for (const [digest, { expiresAt }] of this.#sessions) if (expiresAt <= now) this.#sessions.delete(digest);
    if (this.#sessions.size >= maxLinks)
      throw new AtCapacity(`${maxLinks} sign-in links wait to be used: use one, or wait.`, linkMs);
    const code = randomBytes(32).toString("base64url");
    this.#sessions.set(digestOf(code), { session, expiresAt: now + linkMs });
    return code;
  }

  /** Undefined for a code that was used, has expired, or was never made. */
  take(code: string, now: number): Session | undefined {
    const digest = digestOf(code);
    const link = this.#sessions.get(digest);
    this.#sessions.delete(digest);
    return link !== undefined && link.expiresAt > now ? link.session : undefined;
  }
}

/** A look-up by the digest says nothing of the code by its time. */
const digestOf = (code: string) => createHash("sha256").update(code).digest("hex");
