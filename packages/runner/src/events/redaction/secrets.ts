import {
  type Issue,
  isJsonObject,
  type MarkedValue,
  markedValues,
  type RunRequest,
  runRequestSchema,
  type SecretKind,
} from "@ambit/core/contract";
import { formsOf } from "@ambit/secret-forms";
import { inCredential, inUrl } from "./parts.js";

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
  const secrets = marked
    .flatMap(({ kind, value }) => partsOf[kind](value))
    .filter((text) => text.length >= minSecretLength && !ordinaryWords.has(text.toLowerCase()));
  return [...new Set(secrets)];
}

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
