import type { GuardOf } from "./protocol.js";
import type { ServiceAccount } from "./service-account.js";

/** A token is renewed this long before it expires. */
const marginMs = 300_000;

/** Access tokens of an account, one after another. */
export interface AccountTokens {
  /** Rejects with an Error that contains no credential. */
  current(): Promise<string>;
  /** The provider refused this one, as after it was revoked. */
  forget(value: string): void;
}

/**
 * Access tokens for an account (RFC 7523), each used until shortly before it expires. Simultaneous requests share one
 * fetch.
 */
export function accountTokens(
  account: ServiceAccount,
  guardOf: GuardOf,
  now: () => number = Date.now,
): AccountTokens {
  let token: { readonly value: string; readonly until: number } | undefined;
  let fetching: Promise<string> | undefined;
  const renew = async () => {
    // Loaded when it is needed: a server starts without it.
    const { fetchToken } = await import("./token-request.js");
    const { value, expiresInMs } = await fetchToken(account, now(), guardOf);
    token = { value, until: now() + expiresInMs - marginMs };
    return value;
  };
  return {
    current: async () => {
      if (token !== undefined && now() < token.until) return token.value;
      fetching ??= renew().finally(() => {
        fetching = undefined;
      });
      return await fetching;
    },
    forget: (value) => {
      if (token?.value === value) token = undefined;
    },
  };
}
