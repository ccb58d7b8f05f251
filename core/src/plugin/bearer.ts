import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { FetchHandler } from "./kinds/sandbox.js";

/** A fresh secret for one exposed handler: 256 bits, base64url. */
export function newToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Clients of model providers send their key in these headers; inside a sandbox, that key is the exposure's token. */
const keyHeaders = ["x-api-key", "x-goog-api-key"] as const;

/** Whether a request presents the token: as `Authorization: Bearer <token>`, or as an API key in its own header. */
export function presentsToken(headers: Headers, token: string): boolean {
  if (matchesBearer(headers.get("authorization"), token)) return true;
  return keyHeaders.some((name) => headers.has(name) && matchesBearer(`Bearer ${headers.get(name)}`, token));
}

/** Guards a handler: requests without the token get 401. The comparison takes constant time. */
export function requireBearer(token: string, handler: FetchHandler): FetchHandler {
  return (request) => {
    if (presentsToken(request.headers, token)) return handler(request);
    return new Response(JSON.stringify({ error: "Unauthorized" }), {
      status: 401,
      headers: { "content-type": "application/json", "www-authenticate": "Bearer" },
    });
  };
}

/** Compares digests, so that the time taken reveals neither the secret's length nor its content. */
export function matchesBearer(header: string | null | undefined, token: string): boolean {
  const presented = /^Bearer (.+)$/i.exec(header ?? "")?.[1] ?? "";
  return timingSafeEqual(digest(presented), digest(token));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
