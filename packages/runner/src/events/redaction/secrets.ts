import {
  type Issue,
  isJsonObject,
  type MarkedValue,
  markedValues,
  parseBoundedJson,
  type RunRequest,
  runRequestSchema,
  type SecretKind,
  suggestsSecret,
} from "@ambit/core/contract";
import { formsOf } from "@ambit/secret-forms";

/** Shorter values, and these words, occur in any text: replacing them would hide nothing and garble much. */
const minSecretLength = 4;
const ordinaryWords = new Set(["true", "false", "null", "none"]);

/** Characters of a path in which a receiver may have put a key: shorter ones are names. */
const minPathLength = 24;

/** Headers whose values are no credentials, and occur in any talk about HTTP. */
const ordinaryHeaders = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "content-type",
  "user-agent",
]);

/** Credentials of a request, with the parts of them that are secret by themselves: each has up to 35 forms, however short it is. */
const maxSecrets = 2_000;
/** Characters of a request's credentials, together. */
const maxSecretCharacters = 32_768;
/** Characters of all that a request marks in which parts are looked for: URLs and headers hold some that aren't secret. */
const maxSearchedCharacters = 2 * maxSecretCharacters;
/**
 * Characters of all their forms, which is what a search for them costs in memory and time. Text in which every
 * character has several spellings (`"'/&<`) reaches it first.
 */
const maxFormCharacters = 655_360;

const markedInRequest = markedValues(runRequestSchema);

/**
 * Every credential that a request carries: as it was given, and the parts of it that are secret by themselves. Without the
 * parts where there is so much that `tooManySecrets` refuses it: to look for them would take seconds. Pure.
 */
export function secretsOf(request: RunRequest): readonly string[] {
  const marked = markedInRequest(request);
  const whole = marked.flatMap(({ value }) => wholeTextsIn(value));
  return charactersOf(whole) > maxSearchedCharacters ? whole : secretsIn(marked);
}

function wholeTextsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(wholeTextsIn) : [];
}

/** What is searched for in results of tools: a shorter one occurs in any text, which its reader needs. */
const minOutsideLength = 8;

/**
 * The credentials of a request that no process of the sandbox gets, unlike those of its tools' and stdio servers' own
 * environments. Pure.
 */
export function secretsOutside(request: RunRequest): readonly string[] {
  const { customTools: _own, sandboxCredentials: _inside, mcpServers, ...rest } = request;
  const remote = mcpServers.filter(({ connection }) => connection.type === "http");
  const secrets = secretsIn(markedInRequest({ ...rest, mcpServers: remote }));
  return secrets.filter(({ length }) => length >= minOutsideLength);
}

/** The same of values that a schema marks, such as settings. Pure. */
export function secretsIn(marked: readonly MarkedValue[]): readonly string[] {
  return [...new Set(textsWithin(marked).filter(isSearchable))];
}

/**
 * The credentials of a request that are too short or too ordinary to be searched for in texts. Where a field holds one and nothing
 * else, it can still be hidden. Pure.
 */
export function unsearchableSecretsOf(request: RunRequest): ReadonlySet<string> {
  return new Set(textsWithin(markedInRequest(request)).filter((text) => text !== "" && !isSearchable(text)));
}

const textsWithin = (marked: readonly MarkedValue[]) =>
  marked.flatMap(({ kind, value }) => partsOf[kind](value));

const isSearchable = (text: string) =>
  text.length >= minSecretLength && !ordinaryWords.has(text.toLowerCase());

const partsOf: Readonly<Record<SecretKind, (value: unknown) => readonly string[]>> = {
  credential: ofText(inCredential),
  password: ofText(inPassword),
  authorization: ofText(inAuthorization),
  headers: (headers) => inHeaders(textsOf(headers)),
  url: ofText(inUrl),
  address: ofText(inAddress),
  login: (login) => (isJsonObject(login) ? textsIn(login.login).flatMap(inCredential) : []),
};

/** Of one text, or of each in a list. */
function ofText(partsOfText: (text: string) => readonly string[]) {
  return (value: unknown) =>
    [value].flat().flatMap((text) => (typeof text === "string" ? partsOfText(text) : []));
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
  if (all.length > maxSecrets) {
    const max = maxSecrets.toLocaleString("en");
    const message = `carries more than ${max} credentials and variables of tools' environments: ${fix}`;
    return [{ path: "", message }];
  }
  if (haveLongForms(all)) {
    const max = maxFormCharacters.toLocaleString("en");
    const message = `carries credentials and tools' environments that have more than ${max} characters in all the encodings in which output is searched for them: ${fix}`;
    return [{ path: "", message }];
  }
  return undefined;
}

function haveLongForms(secrets: readonly string[]): boolean {
  let characters = 0;
  // The first ones may be too many already.
  return secrets.some((secret) => {
    characters += charactersOf(formsOf(secret));
    return characters > maxFormCharacters;
  });
}

const charactersOf = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0);

function inHeaders(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers)
    .filter(([name]) => !ordinaryHeaders.has(name.toLowerCase()))
    .flatMap(([, value]) => inAuthorization(value));
}

/** `Bearer abc`: the value, and the credential behind its scheme; what `Basic` encodes. */
function inAuthorization(value: string): string[] {
  const credential = value.replace(/^\S+\s+/, "");
  const decoded = /^basic\s/i.test(value) ? Buffer.from(credential, "base64").toString() : undefined;
  return [
    value,
    ...inCredential(credential),
    ...(decoded?.includes(":") === true ? inPassword(decoded) : []),
  ];
}

/** `user:password` */
function inPassword(value: string): string[] {
  const colon = value.indexOf(":");
  return [...inCredential(value), ...(colon < 0 ? [] : inCredential(value.slice(colon + 1)))];
}

/** Receivers put the key of a webhook into the path of its address: a program may show the path alone. */
function inAddress(value: string): string[] {
  const path = URL.canParse(value) ? new URL(value).pathname : "";
  return [value, ...(path.length < minPathLength ? [] : [path]), ...inUrl(value)];
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

/** Characters of a line of a key or certificate; shorter ones aren't secret. */
const minLineLength = 16;

/**
 * A credential, and the parts of it that are secret by themselves: the password of a connection string, a key within
 * JSON, the lines of a key that has several. A program may print one of them alone. Pure.
 */
function inCredential(value: string): string[] {
  return [value, ...inUrl(value), ...inConnectionString(value), ...inJson(value), ...linesOf(value)];
}

/**
 * The user info and the secret-looking query values of `scheme://user:password@host/?token=…`, as written and
 * decoded. A user alone is a token, as in `https://TOKEN@github.com`. Pure.
 */
function inUrl(url: string): string[] {
  const [, authority = "", rest = ""] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#\s]*)(.*)$/is.exec(url) ?? [];
  const at = authority.lastIndexOf("@");
  const info = at < 0 ? "" : authority.slice(0, at);
  const colon = info.indexOf(":");
  const parts = info === "" ? [] : colon < 0 ? [info] : [info, info.slice(colon + 1)];
  const query = /\?([^#]*)/.exec(rest)?.[1] ?? "";
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    if (equals > 0 && suggestsSecret(pair.slice(0, equals))) parts.push(pair.slice(equals + 1));
  }
  return parts.flatMap((part) => [part, decoded(part)]);
}

/** `host=x password=y`, `Server=x;Password=y`, `user:password@tcp(host)/name`. */
function inConnectionString(value: string): string[] {
  const assigned = [...value.matchAll(/([a-z_-]{1,40})\s?=\s?("[^"]*"|'[^']*'|[^;\s]+)/gi)].flatMap(
    ([, name = "", text = ""]) => (suggestsSecret(name) ? [text.replace(/^(["'])(.*)\1$/s, "$2")] : []),
  );
  const parts = /^[^:@/\s]*:(.*)@[a-z]*\(/is.exec(value);
  return parts?.[1] === undefined ? assigned : [...assigned, parts[1]];
}

function inJson(value: string): string[] {
  if (!value.trimStart().startsWith("{")) return [];
  try {
    return secretsWithin(parseBoundedJson(value), 8);
  } catch {
    // Not JSON: taken as a plain value.
    return [];
  }
}

function secretsWithin(value: unknown, levels: number): string[] {
  if (!isJsonObject(value) || levels === 0) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (typeof inner !== "string") return secretsWithin(inner, levels - 1);
    return suggestsSecret(name) ? [inner, ...linesOf(inner)] : [];
  });
}

function linesOf(value: string): string[] {
  const lines = value.split("\n").map((line) => line.trim());
  if (lines.length < 2) return [];
  return lines.filter((line) => line.length >= minLineLength && !line.startsWith("-----"));
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // A literal percent sign.
    return part;
  }
}
