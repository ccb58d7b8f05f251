import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { FetchHandler } from "./kinds/sandbox.js";

/** A fresh secret for one exposed handler: 256 bits, base64url. */
export function newToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Where clients of model providers put their key, which is an exposure's token then. */
const keyHeaders = ["x-api-key", "x-goog-api-key"] as const;

/** Whether a request presents the token: `Authorization: Bearer <token>`, or as an API key in a header of its own. */
export function presentsToken(headers: Headers, token: string): boolean {
  if (matchesBearer(headers.get("authorization"), token)) return true;
  return keyHeaders.some((name) => headers.has(name) && matchesBearer(`Bearer ${headers.get(name)}`, token));
}

/** Guards a handler: only a request that presents the token gets through. Compared in constant time. */
export function requireBearer(token: string, handler: FetchHandler): FetchHandler {
  return (request) => {
    if (presentsToken(request.headers, token)) return handler(request);
    return new Response(JSON.stringify({ error: "Unauthorized" }), {
      status: 401,
      headers: { "content-type": "application/json", "www-authenticate": "Bearer" },
    });
  };
}

/** Digests first, so that neither the length nor the content of the secret shows in the time taken. */
export function matchesBearer(header: string | null | undefined, token: string): boolean {
  const presented = /^Bearer (.+)$/i.exec(header ?? "")?.[1] ?? "";
  return timingSafeEqual(digest(presented), digest(token));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
