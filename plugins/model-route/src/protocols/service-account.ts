import { literalAddress } from "@ambit/egress";
import { exchange } from "@ambit/egress/client";
import { z } from "zod";
import type { GuardOf } from "./protocol.js";

const accountSchema = z.object({
  type: z.literal("service_account"),
  client_email: z.string().min(1).max(320),
  private_key: z.string().regex(/^-----BEGIN PRIVATE KEY-{5}/, "must be a PKCS #8 key in PEM"),
  private_key_id: z.string().max(200).optional(),
  token_uri: z.url({ protocol: /^https?$/ }).default("https://oauth2.googleapis.com/token"),
});
type ServiceAccount = z.output<typeof accountSchema>;

/**
 * The account that a key's JSON is for, or why it is invalid. Pure.
 *
 * @param endpoint the model's: an address that it may have, its tokens may come from too.
 */
export function accountIn(text: string, endpoint: string): ServiceAccount | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Possibly a path: the file isn't read, since a request can't name files of the runner.
    return "isn't JSON: give the content of the service account's key, not its path";
  }
  const read = accountSchema.safeParse(value);
  if (!read.success) return "isn't a service account's key: type, client_email and private_key are needed";
  const url = new URL(read.data.token_uri);
  const isNeighbour =
    literalAddress(url) !== undefined &&
    URL.canParse(endpoint) &&
    literalAddress(new URL(endpoint)) === literalAddress(url);
  if (url.hostname !== "oauth2.googleapis.com" && !isNeighbour) return "has a token_uri that isn't Google's";
  return read.data;
}

/** A token is renewed this long before it expires. */
const marginMs = 300_000;

/** Access tokens of an account, one after another. */
interface AccountTokens {
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

const scope = "https://www.googleapis.com/auth/cloud-platform";
const tokenLifetimeSeconds = 3_600;
const fetchMs = 15_000;
const maxTokenBytes = 65_536;

const responseSchema = z.object({
  access_token: z.string().min(1).max(8_192),
  expires_in: z.number().positive(),
});

/** A new access token (RFC 7523). @throws Error, without any credential */
async function fetchToken(
  account: ServiceAccount,
  at: number,
  guardOf: GuardOf,
): Promise<{ value: string; expiresInMs: number }> {
  // Loaded when it is needed: a server starts without it.
  const { importPKCS8, SignJWT } = await import("jose");
  const url = new URL(account.token_uri);
  const issuedAt = Math.floor(at / 1_000);
  const assertion = await new SignJWT({ scope })
    .setProtectedHeader({
      alg: "RS256",
      typ: "JWT",
      ...(account.private_key_id === undefined ? {} : { kid: account.private_key_id }),
    })
    .setIssuer(account.client_email)
    .setAudience(account.token_uri)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + tokenLifetimeSeconds)
    .sign(await importPKCS8(account.private_key, "RS256"));
  const { status, body } = await exchange(
    {
      method: "POST",
      url,
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({
        grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
        assertion,
      }).toString(),
    },
    guardOf(url),
    { maxBytes: maxTokenBytes, signal: AbortSignal.timeout(fetchMs) },
  );
  if (status !== 200) throw new Error(`the token endpoint answered with ${status}`);
  const { access_token: value, expires_in: seconds } = responseSchema.parse(JSON.parse(body));
  return { value, expiresInMs: seconds * 1_000 };
}
