import { addressesOfThisHost, guardedLookup, literalAddress, whyClosed } from "@ambit/egress";
import { z } from "zod";

const scope = "https://www.googleapis.com/auth/cloud-platform";
const tokenLifetimeSeconds = 3_600;
/** A token is renewed this long before it expires. */
const marginMs = 300_000;
const fetchMs = 15_000;
const maxTokenBytes = 65_536;

const accountSchema = z.object({
  type: z.literal("service_account"),
  client_email: z.string().min(1).max(320),
  private_key: z.string().regex(/^-----BEGIN PRIVATE KEY-{5}/, "must be a PKCS #8 key in PEM"),
  private_key_id: z.string().max(200).optional(),
  token_uri: z.url({ protocol: /^https?$/ }).default("https://oauth2.googleapis.com/token"),
});
export type ServiceAccount = z.output<typeof accountSchema>;

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

const responseSchema = z.object({
  access_token: z.string().min(1).max(8_192),
  expires_in: z.number().positive(),
});

/**
 * Access tokens for an account (RFC 7523), each used until shortly before it expires. Simultaneous requests share one
 * fetch.
 *
 * @returns rejects with an Error that contains no credential.
 */
export function serviceAccountToken(
  account: ServiceAccount,
  now: () => number = Date.now,
): () => Promise<string> {
  let token: { readonly value: string; readonly until: number } | undefined;
  let fetching: Promise<string> | undefined;
  const renew = async () => {
    const { value, expiresInMs } = await fetchToken(account, now());
    token = { value, until: now() + expiresInMs - marginMs };
    return value;
  };
  return async () => {
    if (token !== undefined && now() < token.until) return token.value;
    fetching ??= renew().finally(() => {
      fetching = undefined;
    });
    return await fetching;
  };
}

async function fetchToken(
  account: ServiceAccount,
  at: number,
): Promise<{ value: string; expiresInMs: number }> {
  // Loaded when they are needed: a server starts without them.
  const [{ importPKCS8, SignJWT }, { Agent }] = await Promise.all([import("jose"), import("undici")]);
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
  const agent = new Agent({
    maxResponseSize: maxTokenBytes,
    connect: {
      rejectUnauthorized: true,
      timeout: fetchMs,
      lookup: guardedLookup((address) => whyClosed(address, [], { own: addressesOfThisHost() })),
    },
  });
  try {
    const { statusCode, body } = await agent.request({
      origin: url.origin,
      path: url.pathname,
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({
        grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
        assertion,
      }).toString(),
      signal: AbortSignal.timeout(fetchMs),
    });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`the token endpoint answered with ${statusCode}`);
    const { access_token: value, expires_in: seconds } = responseSchema.parse(JSON.parse(text));
    return { value, expiresInMs: seconds * 1_000 };
  } finally {
    await agent.destroy();
  }
}
