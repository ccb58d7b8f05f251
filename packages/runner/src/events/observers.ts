import { toAmbitError } from "@ambit/core";
import type { Log, RunObserver } from "@ambit/core/plugin";
import type { RunLimits } from "../limits.js";

/** A request became no run. */
export function tellRefused(observers: readonly RunObserver[], error: unknown, log: Log): void {
  const { code, gaps = [] } = toAmbitError(error).toFailure();
  const capabilities = [...new Set(gaps.map(({ capability }) => capability))];
  for (const observer of observers) {
    try {
      observer.refused?.({ code, capabilities });
    } catch (failure) {
      log.error({ observer: observer.name, error: failure }, "an observer failed");
    }
  }
}

/** Lets each end what it still does or keeps, for `limits.closeMs` at most. */
export async function closeActors(
  actors: readonly Pick<RunObserver, "name" | "close">[],
  { limits, log }: { readonly limits: Pick<RunLimits, "closeMs">; readonly log: Log },
): Promise<void> {
  const signal = AbortSignal.timeout(limits.closeMs);
  const given = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  const closing = actors.map(async (actor) => {
    try {
      await actor.close?.(signal);
    } catch (error) {
      log.error({ actor: actor.name, error }, "a plugin's actor could not be closed");
    }
  });
  await Promise.race([Promise.all(closing), given]);
}
