import { createHash, randomBytes } from "node:crypto";
import { AtCapacity } from "@ambit/core";

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
