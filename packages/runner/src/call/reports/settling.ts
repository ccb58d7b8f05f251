import { aborted, LinkedAbort, settlesWithin } from "../../lifetime/linked-abort.js";
import type { Pause } from "../../lifetime/pause.js";
import type { OwnedScope } from "../../lifetime/scope.js";
import type { RunLimits } from "../../limits.js";
import type { Calls } from "./calls.js";

/** Milliseconds without a change after which no parallel call is on its way any more. */
const quietMs = 100;
/** Milliseconds in which a call that the agent reported, or may make, reaches the runner: a busy machine is slow. */
const arrivalMs = 1_000;

/** Lets the calls that are allowed finish before a pause takes effect. */
export class Settling {
  #settling: Promise<void> | undefined;

  constructor(
    private readonly limits: Pick<RunLimits, "pauseMs">,
    private readonly scope: OwnedScope,
    private readonly calls: Calls,
    private readonly pause: Pause,
  ) {}

  /** Begins to pause. Resolves when the pause is in effect, or the run is over. @param maxMs that a call may wait for that. */
  paused(maxMs: number): Promise<void> {
    this.pause.begin();
    this.#settling ??= this.#settle(Math.min(this.limits.pauseMs, maxMs));
    return this.#settling;
  }

  async #settle(maxMs: number): Promise<void> {
    const begunAt = performance.now();
    using limit = new LinkedAbort(this.scope.signal, this.pause.effect);
    limit.after(maxMs, () => new Error("the calls took too long"));
    while (!limit.signal.aborted) {
      const changed = Promise.race([this.calls.changed(), aborted(limit.signal)]);
      const { isExecuting, isComing } = this.calls.progress;
      if (isExecuting) {
        await changed;
        continue;
      }
      const sinceMs = performance.now() - begunAt;
      const waitMs = isComing && sinceMs < arrivalMs ? arrivalMs - sinceMs : quietMs;
      if (!(await settlesWithin(changed, Math.min(waitMs, maxMs)))) break;
    }
    this.pause.takeEffect();
  }
}
