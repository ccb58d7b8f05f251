/** The sandbox of a session's next run: this runner's own, with or without a move, or one that another runner opened. */

import { type AcceptedPlan, messageOf, requiredPathsOf } from "@ambit/core";
import type { FilesystemBoundary, Log, SandboxBackend } from "@ambit/core/plugin";
import { tooManySecrets } from "../events/redaction.js";
import type { WorkspaceService } from "../operator.js";
import {
  lostBecause,
  Session,
  type SessionHolding,
  type SessionRecord,
  sessionFingerprintOf,
  sessionRecordSchema,
  suspendedSessionSchema,
} from "./session.js";
import type { SessionRefresh } from "./session-secrets.js";

/** A session whose sandbox is there, as the next run of its name finds it. */
interface PresentSandbox {
  /** Why no run may have it any more. */
  readonly failure: { readonly message: string } | undefined;
  /** The key of the plan that it was opened for. */
  readonly fingerprint: string;
  readonly backend: string;
  readonly secrets: {
    readonly all: ReadonlySet<string>;
    mayRemember(secrets: readonly string[]): boolean;
  };
  readonly hadVisibleCredentials: boolean;
  /** The host's files that it shows to the agent. */
  readonly paths: ReadonlySet<string>;
}

/** What the next run needs. */
interface NeededSandbox {
  readonly fingerprint: string;
  readonly backend: string;
  readonly filesystem: FilesystemBoundary["mode"];
  /** Every credential of its request. */
  readonly secrets: readonly string[];
  /** The host's files that its agent doesn't start without: others than before, where its program was replaced. */
  readonly paths: readonly string[];
}

/**
 * - `reuse`: the run gets the sandbox.
 * - `move`: a new sandbox gets its files.
 * - `refuse`: a new sandbox couldn't get them, so the run fails, and the session stays as it is.
 * - `lost`: there is nothing that could be moved.
 */
type NextSandbox =
  | { readonly how: "reuse" }
  | {
      readonly how: "move";
      /** Why only the workspace is moved. Undefined: the home is moved too, with the agent's conversation. */
      readonly withoutHome: string | undefined;
    }
  | { readonly how: "refuse"; readonly why: string }
  | { readonly how: "lost"; readonly why: string };

/** Decides what becomes of a session's sandbox. Pure. */
export function nextSandbox(present: PresentSandbox, needed: NeededSandbox): NextSandbox {
  if (present.failure !== undefined) return { how: "lost", why: lostBecause.failed(present.failure) };
  if (!present.secrets.mayRemember(needed.secrets))
    return { how: "lost", why: "its runs have had more credentials than are kept apart" };
  const showsProgram = needed.paths.every((path) => present.paths.has(path));
  if (present.fingerprint === needed.fingerprint && showsProgram) return { how: "reuse" };
  if (needed.filesystem === "readonly" || needed.filesystem === "off")
    return { how: "refuse", why: unwritable(needed.filesystem) };
  return { how: "move", withoutHome: whyWithoutHome(present, needed) };
}

export function unwritable(filesystem: NeededSandbox["filesystem"]): string {
  return `sandboxPermission.filesystem is "${filesystem}", so its files can't be written there`;
}

/** No sandbox gets a copy of a credential that its own request doesn't have. Pure. */
export function whyWithoutHome(
  present: Pick<PresentSandbox, "backend" | "fingerprint" | "hadVisibleCredentials"> & {
    readonly secrets: Pick<PresentSandbox["secrets"], "all">;
  },
  needed: Pick<NeededSandbox, "backend" | "fingerprint" | "secrets">,
): string | undefined {
  if (present.fingerprint === needed.fingerprint) return undefined;
  if (present.backend !== needed.backend) return `it was made in a sandbox on ${present.backend}`;
  if (present.hadVisibleCredentials && !present.secrets.all.isSubsetOf(new Set(needed.secrets)))
    return "an earlier run's agent could read credentials there that this request doesn't have";
  return undefined;
}

/** What a plan needs of its session's sandbox. */
export function neededBy(plan: AcceptedPlan, fingerprint: string, secrets: readonly string[]): NeededSandbox {
  return {
    fingerprint,
    backend: plan.sandbox.actor.name,
    filesystem: plan.boundary.filesystem.mode,
    secrets,
    paths: requiredPathsOf(plan.harness.actor, plan.sandbox.actor).flatMap(({ path, isOptional }) =>
      isOptional === true ? [] : [path],
    ),
  };
}

interface TakeOverOptions {
  readonly plan: AcceptedPlan;
  readonly secrets: readonly string[];
  readonly log: Log;
  readonly closeMs: number;
  readonly refresh: SessionRefresh;
  readonly signal: AbortSignal;
}

/**
 * Continues a session's sandbox that another runner opened, or the files of one that ended with it, if it was for the same
 * plan. Where it can't be used, it is removed.
 * @returns why the session's files are lost, undefined if it had none yet
 */
export async function takeOver(
  { fence, record: kept }: SessionHolding,
  options: TakeOverOptions,
): Promise<Session | { readonly lost: string | undefined }> {
  const { plan, secrets, log, closeMs, refresh, signal } = options;
  const read = sessionRecordSchema.safeParse(kept);
  // Its first run ended with its runner before there was anything to lose.
  const isEmpty = read.success && read.data.isEmpty;
  let why = read.success ? whyUnusable(read.data, plan, secrets) : "another version of Ambit kept it";
  if (why === undefined && read.success && !isEmpty) {
    try {
      return await Session.open(plan, log, closeMs, signal, { fence, record: read.data, refresh });
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn({ error }, "a session's sandbox could not be taken over");
      const what =
        read.data.handover === undefined
          ? "its server ended without closing it, and its files"
          : "its sandbox";
      why = `${what} could not be taken over (${messageOf(error)})`;
    }
  }
  if (read.success) await discard(read.data, fence, plan.sandbox.actor, log);
  return { lost: isEmpty ? undefined : (why ?? "another version of Ambit kept it") };
}

function whyUnusable(
  record: SessionRecord,
  plan: AcceptedPlan,
  secrets: readonly string[],
): string | undefined {
  const { sandbox } = plan;
  const isOffered = record.handover === undefined || sandbox.actor.takeover !== undefined;
  if (record.sandbox !== sandbox.actor.name || !isOffered) return `its sandbox was on ${record.sandbox}`;
  if (record.fingerprint !== sessionFingerprintOf(plan))
    return "its sandbox was opened under another boundary, for another agent, or with other hidden credentials";
  if (tooManySecrets(new Set([...record.secrets, ...secrets])) !== undefined)
    return "its runs have had more credentials than are kept apart";
  return undefined;
}

/** Removes what is left of an ended session: its sandbox if its backend is loaded here, or its files. */
export async function discardSession(
  { fence, record }: SessionHolding,
  project: string | undefined,
  sandboxes: readonly SandboxBackend[],
  suspended: WorkspaceService["suspended"],
  log: Log,
): Promise<void> {
  const suspension = suspendedSessionSchema.safeParse(record);
  if (suspension.success) {
    await suspended?.delete(suspension.data.suspended, project).catch((error: unknown) => {
      log.warn({ error }, "the kept files of an ended session could not be deleted");
    });
    return;
  }
  const read = sessionRecordSchema.safeParse(record);
  for (const actor of read.success ? sandboxes : [])
    if (read.success) await discard(read.data, fence, actor, log);
}

/** What can't be removed is left to the backend's reaper. */
async function discard(
  { id, sandbox, handover, remains }: SessionRecord,
  fence: number,
  actor: SandboxBackend,
  log: Log,
): Promise<void> {
  if (actor.name !== sandbox) return;
  try {
    if (handover !== undefined) await actor.takeover?.discard({ id, fence, log }, handover);
    if (remains !== undefined) await actor.discardRemains?.(remains);
  } catch (error) {
    log.warn({ error }, "a session's earlier sandbox could not be removed");
  }
}
