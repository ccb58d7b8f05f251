/**
 * One line that names an error and its cause with their codes, such as `fetch failed (ECONNREFUSED: connect
 * ECONNREFUSED 127.0.0.1:9)`. Refusals of a boundary are reported this way.
 */
export function failureText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error);
  const message =
    code === undefined || error.message.includes(code) ? error.message : `${code}: ${error.message}`;
  return error.cause === undefined ? message : `${message} (${failureText(error.cause)})`;
}

function codeOf(error: Error): string | undefined {
  return "code" in error && (typeof error.code === "string" || typeof error.code === "number")
    ? String(error.code)
    : undefined;
}
