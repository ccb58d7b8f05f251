import { messageOf } from "@ambit/core";
import { parseBoundedJson, refreshedCredentialSchema } from "@ambit/core/contract";
import { type HiddenCredential, type Log, type RefreshedSecret, unlessAborted } from "@ambit/core/plugin";
import { LinkedAbort } from "../../lifetime/scope.js";
import type { CredentialRefreshService, HideSecrets } from "../../operator.js";
import type { SessionSecrets } from "./session-secrets.js";

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
  const asked = await askForValue(credential, service, asker(), signal);
  if (!asked.ok) return asked;
  if (signal.aborted) return { ok: false, reason: "the session is closed" };
  const before = secrets.all;
  const { value, expiresAt } = asked;
  if (!secrets.rememberValue(credential.name, value, hide))
    return { ok: false, reason: "its new value is too long beside the session's other credentials" };
  onChange(before.difference(secrets.all));
  return { ok: true, value, expiresAt, known: secrets.refreshed };
}

/** Milliseconds for one question to the platform: requests of the sandbox wait for it. */
const timeoutMs = 10_000;
/** A value that is valid for less would be asked for again at once. */
const minValidMs = 10_000;

/** For whom a credential is refreshed. */
export interface RefreshedFor {
  /** As the request names it. Undefined for a session that ends with its run. */
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
