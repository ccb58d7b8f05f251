import { exchange } from "@ambit/egress/client";
import { importPKCS8, SignJWT } from "jose";
import { z } from "zod";
import type { GuardOf } from "./protocol.js";
import type { ServiceAccount } from "./service-account.js";

const scope = "https://www.googleapis.com/auth/cloud-platform";
const tokenLifetimeSeconds = 3_600;
const fetchMs = 15_000;
const maxTokenBytes = 65_536;

const responseSchema = z.object({
  access_token: z.string().min(1).max(8_192),
  expires_in: z.number().positive(),
});

/** A new access token (RFC 7523). @throws Error, without any credential */
export async function fetchToken(
  account: ServiceAccount,
  at: number,
  guardOf: GuardOf,
): Promise<{ value: string; expiresInMs: number }> {
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
