import { inOffer } from "@ambit/core";
import type { Failure, RunRequest } from "@ambit/core/contract";
import type {
  Log,
  LostRun,
  PrewarmClaim,
  RunnerState,
  RunObserver,
  WebhookAttempt,
} from "@ambit/core/plugin";
import type { RunLimits } from "../limits.js";
import { type CallersTrace, callersSpan } from "../parse/callers-trace.js";

/** What is known of a refused request besides its failure. */
export interface RefusedRequest {
  /** Of the response. */
  readonly status?: number;
  /** Milliseconds since 1970. */
  readonly begunAt?: number;
  /** The caller's trace. */
  readonly trace?: CallersTrace;
  /** Where it wants its telemetry. */
  readonly telemetry?: RunRequest["telemetry"];
}

/** A request was refused before its run began. */
export function notifyRefused(
  observers: readonly RunObserver[],
  failure: Failure,
  { trace = {}, ...facts }: RefusedRequest,
  log: Log,
): void {
  const { code, gaps = [] } = failure;
  const capabilities = [...new Set(gaps.map(({ capability }) => capability))];
  const span = callersSpan(trace);
  const refusal = { code, capabilities, ...facts, trace: span };
  notifyAll(observers, (observer) => observer.refused?.(refusal), log);
}

/** A server is up. @param state resolves with its present state. */
export function notifyServing(
  observers: readonly RunObserver[],
  state: () => Promise<RunnerState>,
  log: Log,
): void {
  notifyAll(observers, (observer) => observer.watch?.(state), log);
}

/** A run of a dead process was ended. @param recoveries what its observers had stored, by their names */
export function notifyLost(
  observers: readonly RunObserver[],
  run: Omit<LostRun, "recovery">,
  recoveries: Readonly<Record<string, string>>,
  log: Log,
): void {
  const ofOne = ({ name }: RunObserver) =>
    Object.hasOwn(recoveries, name) ? { ...run, recovery: recoveries[name] } : run;
  notifyAll(observers, (observer) => observer.lost?.(ofOne(observer)), log);
}

/** A webhook message of a run was posted, or couldn't be. */
export function notifyPosted(observers: readonly RunObserver[], attempt: WebhookAttempt, log: Log): void {
  notifyAll(observers, (observer) => observer.posted?.(attempt), log);
}

/** A run asked for an agent that was started ahead. */
export function notifyPrewarmed(observers: readonly RunObserver[], claim: PrewarmClaim, log: Log): void {
  notifyAll(observers, (observer) => observer.prewarmed?.(claim), log);
}

function notifyAll(
  observers: readonly RunObserver[],
  notify: (observer: RunObserver) => void,
  log: Log,
): void {
  for (const observer of observers) {
    try {
      inOffer(observer, () => notify(observer));
    } catch (error) {
      log.error({ observer: observer.name, error }, "an observer failed");
    }
  }
}

/** Closes each of them, within `limits.closeMs`. */
export async function closeActors(
  actors: readonly Pick<RunObserver, "name" | "close">[],
  { limits, log }: { readonly limits: Pick<RunLimits, "closeMs">; readonly log: Log },
): Promise<void> {
  const signal = AbortSignal.timeout(limits.closeMs);
  const timeIsUp = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  const closing = actors.map(async (actor) => {
    try {
      await inOffer(actor, () => actor.close?.(signal));
    } catch (error) {
      log.error({ actor: actor.name, error }, "a plugin's actor could not be closed");
    }
  });
  await Promise.race([Promise.all(closing), timeIsUp]);
}
