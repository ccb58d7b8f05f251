/** Headers with which an agent may describe itself and its body, for every API. */
const always = ["accept", "content-type", "user-agent", "idempotency-key"] as const;

const maxValueLength = 4_096;

/**
 * The agent's headers that go to its model: a short list by name, so that none of them smuggles a credential, a host or
 * a second body. Pure.
 */
export function passedHeaders(given: Headers, further: readonly string[]): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name of [...always, ...further]) {
    const value = given.get(name);
    if (value !== null && value.length <= maxValueLength) passed[name] = value;
  }
  return passed;
}

/** Headers that a request's endpoint can't set: they frame the message, name the host, or hold the credential. */
const reserved: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "content-encoding",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "proxy-authorization",
  "proxy-connection",
  "accept-encoding",
]);

export function isReserved(name: string): boolean {
  return reserved.has(name.toLowerCase());
}

const responseHeaders = [
  "content-type",
  "retry-after",
  "retry-after-ms",
  "request-id",
  "x-request-id",
] as const;
const responsePrefixes = ["anthropic-", "openai-", "x-ratelimit-", "x-amzn-", "x-should-retry"] as const;

/** The response's headers that the agent gets: none that sets a cookie, redirects or frames the message. */
export function passedResponseHeaders(
  given: Readonly<Record<string, string | string[] | undefined>>,
  redact: (text: string) => string,
): Headers {
  const passed = new Headers();
  for (const [name, value] of Object.entries(given)) {
    if (typeof value !== "string" || value.length > maxValueLength) continue;
    const isKnown =
      responseHeaders.some((one) => one === name) || responsePrefixes.some((one) => name.startsWith(one));
    if (isKnown) passed.set(name, redact(value));
  }
  return passed;
}
