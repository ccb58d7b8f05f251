import type { RunRequest } from "../contract/index.js";

/** Shorter values, and these words, occur in any text: replacing them would hide nothing and garble much. */
const shortestSecret = 4;
const ordinaryWords = new Set(["true", "false", "null", "none"]);

/** Headers whose values are no credentials, and occur in any talk about HTTP. */
const ordinaryHeaders = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "content-type",
  "user-agent",
]);

/** Every credential a request carries, as it was given. Pure. */
export function secretsOf(request: RunRequest): readonly string[] {
  const connection = request.modelConnection;
  const values = [
    ...(connection?.credentials ?? []).map(({ value }) => value),
    ...inHeaders(connection?.endpoint?.headers),
    ...inAuthorization(request.toolCallback?.authorization),
    ...request.customTools.flatMap(({ env }) => Object.values(env ?? {})),
    ...request.mcpServers.flatMap(({ connection }) =>
      connection.type === "stdio"
        ? Object.values(connection.env ?? {})
        : [
            ...inHeaders(connection.headers),
            ...(connection.credentials ?? []).flatMap(({ value }) => inAuthorization(value)),
          ],
    ),
    ...headersWithin(request.telemetry),
  ];
  return values.filter((value) => value.length >= shortestSecret && !ordinaryWords.has(value.toLowerCase()));
}

function inHeaders(headers: Readonly<Record<string, string>> | undefined): string[] {
  return Object.entries(headers ?? {})
    .filter(([name]) => !ordinaryHeaders.has(name.toLowerCase()))
    .flatMap(([, value]) => inAuthorization(value));
}

/** `Bearer abc`: the value, and the credential behind its scheme. */
function inAuthorization(value: string | undefined): string[] {
  return value === undefined ? [] : [value, value.replace(/^\S+\s+/, "")];
}

/** `telemetry` is opaque but for its headers, wherever an exporter keeps them. */
function headersWithin(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "headers" ? inHeaders(textsOf(inner)) : headersWithin(inner),
  );
}

function textsOf(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  const texts = Object.entries(value).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return Object.fromEntries(texts);
}
