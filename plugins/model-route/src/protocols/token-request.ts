import { addressesOfThisHost, guardedLookup, whyClosed } from "@ambit/egress";
import { importPKCS8, SignJWT } from "jose";
import { Agent } from "undici";
import { z } from "zod";
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
