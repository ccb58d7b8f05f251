/** The credentials of a request, and how they are kept out of all that leaves a run. */

import { createHash } from "node:crypto";
import { HarnessFailed } from "@ambit/core";
import {
  type AgentEvent,
  type EventWith,
  eventTraits,
  type Issue,
  isJsonObject,
  isPart,
  type MarkedValue,
  markedValues,
  parseBoundedJson,
  type RunRequest,
  runRequestSchema,
  type SecretKind,
  suggestsSecret,
  traitsOf,
} from "@ambit/core/contract";
import { Automaton, formsOf, Occurrences } from "@ambit/secret-forms";

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

/** Reads one text, or each text in a list. */
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

/** What a reader sees in place of a secret. */
export const mark = "[redacted]";

/** Texts whose end may be held back at the same time. */
const maxBlocks = 256;

const deltaTypes = { message: "message_delta", thought: "thought_delta", output: "tool_output" } as const;

/** A call's id may be a text's too. */
function blockOf(event: EventWith<{ part: "delta" }> | EventWith<{ part: "end" }>): string {
  return eventTraits[event.type].block === "output" ? `output ${event.id}` : event.id;
}

/** The fields that are sent as they are. */
function enumeratedIn(event: AgentEvent): object {
  const { enumerated } = traitsOf(event);
  const values = Object.entries(event).filter(([key]) => key === "type" || key === enumerated);
  return Object.fromEntries(values);
}

/** Removes known secrets from texts, values and streams, in every form that `formsOf` returns. */
export class Redactor {
  readonly #secrets = new Set<string>();
  /** Undefined if there are no secrets. */
  #automaton: Automaton | undefined;
  /** One per open block: its text comes in pieces. */
  readonly #blocks = new Map<string, StreamRedactor>();

  constructor(secrets: readonly string[]) {
    this.hide(secrets);
  }

  /** Adds secrets, also to blocks that are already open. @param forgotten earlier ones that are no longer searched for */
  hide(secrets: Iterable<string>, forgotten: Iterable<string> = []): void {
    const before = new Set(this.#secrets);
    for (const secret of forgotten) this.#secrets.delete(secret);
    for (const secret of secrets) if (secret !== "") this.#secrets.add(secret);
    if (this.#secrets.symmetricDifference(before).size === 0) return;
    const automaton = automatonFor([...this.#secrets]);
    this.#automaton = automaton;
    for (const block of this.#blocks.values()) block.follow(automaton);
  }

  /** Whether there is anything to hide. */
  get hides(): boolean {
    return this.#automaton !== undefined;
  }

  text(text: string): string {
    if (this.#automaton === undefined || text === "") return text;
    const redactor = new StreamRedactor(this.#automaton, mark);
    return redactor.push(text) + redactor.end();
  }

  /** The same value with every string in it redacted; the value itself when there is nothing to hide. */
  value<Value>(value: Value): Value {
    return this.#automaton === undefined ? value : (this.#redacted(value) as Value);
  }

  /**
   * The events to send instead of this one. A delta's end is held back while it could be the beginning of a
   * secret, so that none slips through between two; the block's end brings what was held.
   */
  event(event: AgentEvent): readonly AgentEvent[] {
    if (this.#automaton === undefined) return [event];
    if (isPart(event, "delta")) {
      const delta = this.#block(blockOf(event), this.#automaton).push(event.delta);
      return delta === "" ? [] : [{ ...event, id: this.text(event.id), delta }];
    }
    const redacted = Object.assign(this.value(event), enumeratedIn(event));
    if (!isPart(event, "end")) return [redacted];
    const delta = this.#ended(blockOf(event));
    if (delta === "") return [redacted];
    const { block } = eventTraits[event.type];
    return [{ type: deltaTypes[block], id: this.text(event.id), delta }, redacted];
  }

  /** The end of a text that was held back. */
  #ended(id: string): string {
    const delta = this.#blocks.get(id)?.end() ?? "";
    this.#blocks.delete(id);
    return delta;
  }

  #block(id: string, automaton: Automaton): StreamRedactor {
    const openBlock = this.#blocks.get(id);
    if (openBlock !== undefined) return openBlock;
    if (this.#blocks.size >= maxBlocks)
      throw new HarnessFailed(`The agent started more than ${maxBlocks} texts without ending them.`);
    const block = new StreamRedactor(automaton, mark);
    this.#blocks.set(id, block);
    return block;
  }

  #redacted(value: unknown): unknown {
    if (typeof value === "string") return this.text(value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.#redacted(item));
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [this.text(key), this.#redacted(inner)]),
    );
  }
}

/** Those in use, by a digest of their secrets: a run, its session and the log look for the same ones. */
const inUse = new Map<string, WeakRef<Automaton>>();
/** Beyond so many, entries whose automaton is gone are dropped. */
const many = 256;

function automatonFor(secrets: readonly string[]): Automaton {
  const key = createHash("sha256").update(JSON.stringify(secrets.toSorted())).digest("base64url");
  const shared = inUse.get(key)?.deref();
  if (shared !== undefined) return shared;
  const built = new Automaton(secrets.flatMap(formsOf));
  if (inUse.size >= many) {
    for (const [each, reference] of inUse) if (reference.deref() === undefined) inUse.delete(each);
  }
  inUse.set(key, new WeakRef(built));
  return built;
}

/**
 * Redacts a text that arrives in pieces. The joined output is the same however the text is split: the end of what
 * came is held back for as long as it could still become a secret. Secrets that overlap or touch become one mark.
 */
class StreamRedactor {
  #state = 0;
  #held = "";
  /** Offsets in the whole input: where `#held` begins, and where the input read so far ends. */
  #from = 0;
  #read = 0;
  /** Found but not yet output. */
  #occurrences = new Occurrences();
  /** Where the secret of the last mark ends. */
  #marked = -1;
  #automaton: Automaton;

  constructor(
    automaton: Automaton,
    readonly mark: string,
  ) {
    this.#automaton = automaton;
  }

  /** Searches for the secrets of another one from now on, also in what is held back. */
  follow(automaton: Automaton): void {
    this.#automaton = automaton;
    this.#occurrences = new Occurrences();
    this.#state = 0;
    this.#search(this.#held, this.#from);
  }

  push(piece: string): string {
    this.#search(piece, this.#read);
    this.#read += piece.length;
    this.#held += piece;
    return this.#give(this.#read - this.#automaton.depth(this.#state));
  }

  /** Reads a text that begins at this offset of the input, and notes what occurs. */
  #search(text: string, offset: number): void {
    const automaton = this.#automaton;
    let state = this.#state;
    for (let index = 0; index < text.length; index += 1) {
      state = automaton.step(state, text.charCodeAt(index));
      const secret = automaton.ending(state);
      if (secret === -1) continue;
      const end = offset + index + 1;
      this.#occurrences.add(end - automaton.lengthOf(secret), end, secret);
    }
    this.#state = state;
  }

  /** Returns what was held back, at the end of the input. */
  end(): string {
    const remaining = this.#give(this.#read);
    this.#state = 0;
    this.#marked = -1;
    return remaining;
  }

  /** Outputs what precedes `until`, which no later piece can change. */
  #give(until: number): string {
    let output = "";
    let at = this.#from;
    for (const { start, end } of this.#occurrences.takeUntil(until)) {
      if (start > at) output += this.#text(at, start);
      if (start > this.#marked) output += this.mark;
      this.#marked = end;
      at = Math.max(at, end);
    }
    if (until > at) {
      output += this.#text(at, until);
      at = until;
    }
    this.#held = this.#held.slice(at - this.#from);
    this.#from = at;
    return output;
  }

  #text(start: number, end: number): string {
    return this.#held.slice(start - this.#from, end - this.#from);
  }
}
