import type { Log } from "@ambit/core/plugin";
import { ServiceFailure } from "./failure.js";

/** Milliseconds between two tries, and for all of them. */
export interface RemovalTimes {
  readonly everyMs: number;
  readonly limitMs: number;
}

const usual: RemovalTimes = { everyMs: 2_000, limitMs: 120_000 };

export interface Removal {
  readonly name: string;
  /** One try: whether it no longer exists. A throw counts as a failed try. */
  remove(): Promise<boolean>;
  readonly log: Log;
  /** Whether the process stays alive until then. Not for something that probably doesn't exist. */
  readonly holdsProcess: boolean;
  readonly times?: RemovalTimes | undefined;
}

/**
 * Retries the removal of a sandbox that couldn't be removed: one that changes its state answers 409, and one whose
 * creation was abandoned may appear later. Returns at once. What remains at the end is logged, and removed by the reaper.
 */
export function removeLater({ name, remove, log, holdsProcess, times = usual }: Removal): void {
  const keepAt = async () => {
    const end = performance.now() + times.limitMs;
    let last: unknown = new Error("it is still there");
    while (performance.now() < end) {
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, times.everyMs);
        if (!holdsProcess) timer.unref();
      });
      try {
        if (await remove()) return;
      } catch (error) {
        last = error;
        // Without a valid key, no retry can remove anything.
        if (error instanceof ServiceFailure && error.kind === "unauthorized") break;
      }
    }
    log.warn(
      { sandbox: name, error: last },
      "a sandbox on Daytona couldn't be removed; the reaper tries again",
    );
  };
  void keepAt();
}
