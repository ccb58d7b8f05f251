import type { Issue, RunRequest } from "@ambit/core/contract";
import { formsOf } from "@ambit/core/secrets";
import { inCredential, inUrl } from "./parts.js";

/** Shorter values, and these words, occur in any text: replacing them would hide nothing and garble much. */
const minSecretLength = 4;
const ordinaryWords = new Set(["true", "false", "null", "none"]);

/** Headers whose values are no credentials, and occur in any talk about HTTP. */
const ordinaryHeaders = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "content-type",
  "user-agent",
]);

/** Characters of a request's credentials, together. */
const maxSecretCharacters = 32_768;
/**
 * Characters of all their forms, which is what a search for them costs in memory and time. Text in which every
 * character has several spellings (`"'/&<`) reaches it first.
 */
const maxFormCharacters = 655_360;

/** Every credential that a request carries: as it was given, and the parts of it that are secret by themselves. Pure. */
export function secretsOf(request: RunRequest): readonly string[] {
  const connection = request.modelConnection;
  const values = [
    ...(connection?.credentials ?? []).flatMap(({ value }) => inCredential(value)),
    ...inAuthorization(connection?.gatewayCredentials?.value),
    ...textsIn(connection?.subscription?.login).flatMap(inCredential),
    ...(request.sandboxCredentials ?? []).flatMap(({ value }) => inCredential(value)),
    ...request.credentials.flatMap(({ value, as }) => [
      ...inCredential(value),
      ...(as === "basic" && value.includes(":") ? inCredential(value.slice(value.indexOf(":") + 1)) : []),
    ]),
    ...inHeaders(connection?.endpoint?.headers),
    ...inUrl(connection?.endpoint?.baseUrl),
    ...inAuthorization(request.toolCallback?.authorization),
    ...inUrl(request.toolCallback?.endpoint),
    ...request.customTools.flatMap(({ env }) => Object.values(env ?? {}).flatMap(inCredential)),
    ...request.mcpServers.flatMap(({ connection }) =>
      connection.type === "stdio"
        ? Object.values(connection.env ?? {}).flatMap(inCredential)
        : [
            ...inUrl(connection.url),
            ...inHeaders(connection.headers),
            ...(connection.credentials ?? []).flatMap(({ value }) => inAuthorization(value)),
          ],
    ),
    ...headersWithin(request.telemetry),
  ];
  const secrets = values.filter(
    (value) => value.length >= minSecretLength && !ordinaryWords.has(value.toLowerCase()),
  );
  return [...new Set(secrets)];
}

/** The problem of too many credentials; undefined when there is none. Each is searched for in all output of a run. */
export function tooManySecrets(secrets: Iterable<string>): Issue[] | undefined {
  const all = [...secrets];
  const fix = "send what isn't secret in harnessFiles";
  if (charactersOf(all) > maxSecretCharacters) {
    const max = maxSecretCharacters.toLocaleString("en");
    const message = `carries more than ${max} characters of credentials and tools' environments: ${fix}`;
    return [{ path: "", message }];
  }
  if (charactersOf(all.flatMap(formsOf)) > maxFormCharacters) {
    const max = maxFormCharacters.toLocaleString("en");
    const message = `carries credentials and tools' environments that have more than ${max} characters in all the encodings in which output is searched for them: ${fix}`;
    return [{ path: "", message }];
  }
  return undefined;
}

const charactersOf = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0);

function inHeaders(headers: Readonly<Record<string, string>> | undefined): string[] {
  return Object.entries(headers ?? {})
    .filter(([name]) => !ordinaryHeaders.has(name.toLowerCase()))
    .flatMap(([, value]) => inAuthorization(value));
}

/** `Bearer abc`: the value, and the credential behind its scheme; what `Basic` encodes. */
function inAuthorization(value: string | undefined): string[] {
  if (value === undefined) return [];
  const credential = value.replace(/^\S+\s+/, "");
  const decoded = /^basic\s/i.test(value) ? Buffer.from(credential, "base64").toString() : undefined;
  const pair = decoded?.includes(":") === true ? [decoded, decoded.slice(decoded.indexOf(":") + 1)] : [];
  return [value, ...inCredential(credential), ...pair];
}

/** `telemetry` is opaque except for its headers, at any place in an exporter. */
function headersWithin(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "headers" ? inHeaders(textsOf(inner)) : headersWithin(inner),
  );
}

/** The texts of a login, except for what only says its kind. */
function textsIn(login: unknown): string[] {
  const { type: _kind, ...texts } = textsOf(login);
  return Object.values(texts);
}

function textsOf(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  const texts = Object.entries(value).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return Object.fromEntries(texts);
}
