/** The credentials of a session, and how they get new values while it lives. */

import { messageOf } from "@ambit/core";
import { parseBoundedJson, refreshedCredentialSchema } from "@ambit/core/contract";
import { type HiddenCredential, type Log, type RefreshedSecret, unlessAborted } from "@ambit/core/plugin";
import { secretsIn, tooManySecrets } from "../events/redaction.js";
import { LinkedAbort } from "../lifetime/scope.js";
import type { CredentialRefreshService, HideSecrets } from "../operator.js";

/** What a session's output and the log are redacted of as long as it lives. */
export class SessionSecrets {
  readonly #given: Set<string>;
  readonly #refreshed = new RefreshedValues();
  /** Those that the log is redacted of already. */
  #hidden: ReadonlySet<string> = new Set();
  #reveal: () => void = () => {};

  constructor(given: Iterable<string> = []) {
    this.#given = new Set(given);
  }

  /** The credentials of every run so far: the sandbox and a kept agent may still reveal an earlier run's. */
  get all(): ReadonlySet<string> {
    return this.#given.union(this.#refreshed.secrets);
  }

  /** The values that credentials got meanwhile. */
  get refreshed(): Readonly<Record<string, readonly string[]>> {
    return this.#refreshed.byName;
  }

  /** Whether these fit in addition to the earlier ones. */
  mayRemember(secrets: readonly string[]): boolean {
    return tooManySecrets(this.all.union(new Set(secrets))) === undefined;
  }

  /** Redacts them from the log and the output for as long as the session lives. */
  remember(secrets: readonly string[], hide: HideSecrets): void {
    for (const secret of secrets) this.#given.add(secret);
    this.#hideAll(hide);
  }

  /** A credential's new value, in place of its oldest ones if there are many. False if there is no room for it. */
  rememberValue(name: string, value: string, hide: HideSecrets): boolean {
    const secrets = secretsIn([{ kind: "password", value }]);
    const fits = (refreshed: ReadonlySet<string>) =>
      tooManySecrets(this.#given.union(refreshed)) === undefined;
    if (!this.#refreshed.add({ name, value, secrets }, fits)) return false;
    this.#hideAll(hide);
    return true;
  }

  /** The session is closed: the log is no longer redacted of them. */
  reveal(): void {
    this.#reveal();
  }

  #hideAll(hide: HideSecrets): void {
    const { all } = this;
    if (this.#hidden.symmetricDifference(all).size === 0) return;
    this.#hidden = all;
    const reveal = hide([...all]);
    this.#reveal();
    this.#reveal = reveal;
  }
}

/** Earlier values of one credential that a session remembers, and characters of all of them. */
const maxEarlier = 8;
const maxEarlierCharacters = 8_192;

interface RefreshedValue {
  /** The credential's. */
  readonly name: string;
  readonly value: string;
  /** It, and the parts of it that are secret by themselves. */
  readonly secrets: readonly string[];
}

/**
 * The values that a session's credentials got while it lived: the present ones, and earlier ones as long as there is room.
 * Output is redacted of all of them.
 */
export class RefreshedValues {
  /** Oldest first. */
  #kept: readonly RefreshedValue[] = [];

  get secrets(): ReadonlySet<string> {
    return secretsOf(this.#kept);
  }

  /** The values of each credential, by its name. */
  get byName(): Readonly<Record<string, readonly string[]>> {
    const groups = Map.groupBy(this.#kept, ({ name }) => name);
    return Object.fromEntries([...groups].map(([name, kept]) => [name, kept.map(({ value }) => value)]));
  }

  /**
   * Adds one, and forgets the oldest that don't fit besides it.
   * @param fits whether so many secrets may be searched for
   * @returns false if there is no room even without earlier ones: nothing changes then
   */
  add(added: RefreshedValue, fits: (secrets: ReadonlySet<string>) => boolean): boolean {
    const { name, value } = added;
    const earlier = this.#kept.filter((one) => one.name === name && one.value !== value).slice(-maxEarlier);
    let kept = [...this.#kept.filter((one) => one.name !== name || earlier.includes(one)), added];
    while (earlierCharacters(kept) > maxEarlierCharacters || !fits(secretsOf(kept))) {
      const oldest = kept.find((one) => isEarlier(one, kept));
      if (oldest === undefined) return false;
      kept = kept.filter((one) => one !== oldest);
    }
    this.#kept = kept;
    return true;
  }
}

function earlierCharacters(kept: readonly RefreshedValue[]): number {
  const earlier = kept.filter((one) => isEarlier(one, kept));
  return earlier.reduce((sum, { value }) => sum + value.length, 0);
}

/** Whether the credential has got another value since. */
const isEarlier = (one: RefreshedValue, kept: readonly RefreshedValue[]) =>
  kept.findLast(({ name }) => name === one.name) !== one;

const secretsOf = (kept: readonly RefreshedValue[]) => new Set(kept.flatMap(({ secrets }) => secrets));

/** What refreshes the credentials of sessions. */
export interface SessionRefresh {
  readonly service: CredentialRefreshService;
  readonly hide: HideSecrets;
}

interface RefreshedSession {
  readonly id: string;
  readonly hidden: readonly HiddenCredential[];
  readonly secrets: SessionSecrets;
  /** Aborted when the session is closed. */
  readonly signal: AbortSignal;
  /** The run that has the session now. */
  asker(): RefreshedFor | undefined;
  /** The session's secrets changed. */
  onChange(forgotten: ReadonlySet<string>): void;
}

type RefreshSecret = (name: string) => Promise<RefreshedSecret>;

/** `SandboxSpec.refreshSecret` of a session; undefined if none of its credentials is refreshed. */
export function refresherOf(
  session: RefreshedSession,
  by: SessionRefresh | undefined,
  log: Log,
): RefreshSecret | undefined {
  const refreshed = session.hidden.filter(({ refresh }) => refresh !== undefined);
  if (by === undefined || refreshed.length === 0) return undefined;
  return async (name) => {
    const answer = await newValue(
      session,
      refreshed.find((one) => one.name === name),
      by,
    );
    const fields = { session: session.id, credential: name };
    if (answer.ok) log.info(fields, "a credential was refreshed");
    else log.warn({ ...fields, reason: answer.reason }, "a credential could not be refreshed");
    return answer;
  };
}

/** The log and the run know the value before anything uses it. */
async function newValue(
  { secrets, signal, asker, onChange }: RefreshedSession,
  credential: HiddenCredential | undefined,
  { service, hide }: SessionRefresh,
): Promise<RefreshedSecret> {
  if (credential === undefined) return { ok: false, reason: "it has no callback" };
  const answer = await askForValue(credential, service, asker(), signal);
  if (!answer.ok) return answer;
  if (signal.aborted) return { ok: false, reason: "the session is closed" };
  const before = secrets.all;
  const { value, expiresAt } = answer;
  if (!secrets.rememberValue(credential.name, value, hide))
    return { ok: false, reason: "its new value is too long beside the session's other credentials" };
  onChange(before.difference(secrets.all));
  return { ok: true, value, expiresAt, known: secrets.refreshed };
}

/** Milliseconds for one question to the platform: requests of the sandbox wait for it. */
const timeoutMs = 10_000;
/** A value that is valid for less would be asked for again at once. */
const minValidMs = 10_000;

/** The session and run for which a credential is refreshed. */
export interface RefreshedFor {
  /** The session's name in the request. Undefined for a session that ends with its run. */
  readonly sessionId: string | undefined;
  /** Undefined between two runs of a session. */
  readonly runId: string | undefined;
}

interface RefreshedCredential {
  readonly value: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

type Asked =
  | ({ readonly ok: true } & RefreshedCredential)
  /** A text that programs in the sandbox may read. */
  | { readonly ok: false; readonly reason: string };

/** Asks the platform once. Never rejects; a reason has nothing of the request or the response in it. */
async function askForValue(
  { name, refresh }: HiddenCredential,
  service: CredentialRefreshService,
  asker: RefreshedFor | undefined,
  closed: AbortSignal,
): Promise<Asked> {
  if (refresh === undefined) return { ok: false, reason: "it has no callback" };
  using abort = new LinkedAbort(closed);
  const { signal } = abort;
  abort.after(timeoutMs, () => new Error("no answer in time"));
  const request = {
    url: new URL(refresh.url),
    authorization: refresh.authorization,
    body: JSON.stringify({ name, ...asker }),
  };
  try {
    const { status, body } = await unlessAborted(signal, () => service.ask(request, signal));
    if (status < 200 || status > 299)
      return { ok: false, reason: `its platform's callback answered with HTTP ${status}` };
    return readValue(body);
  } catch (error) {
    return { ok: false, reason: `its platform's callback ${whyFailed(error, signal, closed)}` };
  }
}

function readValue(body: string): Asked {
  const refused = (what: string) =>
    ({ ok: false, reason: `its platform's callback answered with ${what}` }) as const;
  let content: unknown;
  try {
    content = parseBoundedJson(body);
  } catch {
    return refused("no JSON");
  }
  const parsed = refreshedCredentialSchema.safeParse(content);
  if (!parsed.success) {
    const fields = new Set(parsed.error.issues.map(({ path }) => String(path[0] ?? "object")));
    return refused(`no valid ${[...fields].join(" and ")}`);
  }
  const expiresAt = Date.parse(parsed.data.expiresAt);
  if (expiresAt - Date.now() < minValidMs) {
    return refused(`a value that is valid for less than ${minValidMs / 1_000} s`);
  }
  return { ok: true, value: parsed.data.value, expiresAt };
}

/** Only what is known to be without a secret: an error of the network may name the address. */
function whyFailed(error: unknown, signal: AbortSignal, closed: AbortSignal): string {
  if (closed.aborted) return "was not called: the session is closed";
  if (signal.aborted) return `didn't answer in ${timeoutMs / 1_000} s`;
  return error instanceof RefreshFailed ? messageOf(error) : "could not be reached";
}

/** Why a platform could not be asked, in words that may be shown: "could not be reached (ECONNREFUSED)". */
export class RefreshFailed extends Error {
  override readonly name = "RefreshFailed";
}
