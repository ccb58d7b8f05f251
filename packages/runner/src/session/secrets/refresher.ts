import type { HiddenCredential, Log, RefreshedSecret } from "@ambit/core/plugin";
import type { CredentialRefreshService, HideSecrets } from "../../operator.js";
import { askForValue, type RefreshedFor } from "./ask-for-value.js";
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
