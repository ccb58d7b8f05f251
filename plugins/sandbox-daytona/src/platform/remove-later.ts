import type { Log } from "@ambit/core/plugin";
import { ServiceFailure } from "./failure.js";

/** Milliseconds: between two tries, and for all of them. */
export interface RemovalTimes {
  readonly everyMs: number;
  readonly limitMs: number;
}

const usual: RemovalTimes = { everyMs: 2_000, limitMs: 120_000 };

export interface Removal {
  readonly name: string;
  /** One try: whether it is gone for good. A throw is a try that failed. */
  remove(): Promise<boolean>;
  readonly log: Log;
  /** Whether the process is kept from its end until then: not for what probably isn't there. */
  readonly holdsProcess: boolean;
  readonly times?: RemovalTimes | undefined;
}

/**
 * Keeps at removing a sandbox that couldn't be removed now: one that changes its state answers 409, and one whose
 * create was given up may be made after that. Returns at once; what is left in the end is logged, and the reaper's.
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
        // Without a valid key nothing is removed, whatever the patience.
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
