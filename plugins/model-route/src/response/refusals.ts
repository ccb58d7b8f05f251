/** A response of the route itself, in a format that clients of every provider read. */
export function ownAnswer(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const type = status >= 500 ? "api_error" : status === 429 ? "rate_limit_error" : "invalid_request_error";
  const body = { type: "error", error: { type, code: status, message: `Ambit's model route: ${message}` } };
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json", ...headers },
  });
}
