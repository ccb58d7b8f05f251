import { SandboxState } from "@daytona/api-client";
import type { Sandboxes } from "./sandboxes/sandboxes.js";

/** Stops what was inactive for too long, deletes what was stopped for too long, and what has lived its time. */
export function watchIntervals(
  sandboxes: Sandboxes,
  minuteMs: number,
  failed: (error: unknown) => void,
): { stop(): void } {
  const look = async () => {
    const now = Date.now();
    for (const sandbox of sandboxes.all()) {
      const past = (since: number | undefined, minutes: number) =>
        since !== undefined && now >= since + minutes * minuteMs;
      const { autoStopInterval, autoDeleteInterval, ttlMinutes } = sandbox;
      if (ttlMinutes > 0 && past(sandbox.createdAt, ttlMinutes)) await sandboxes.destroy(sandbox);
      else if (sandbox.state === SandboxState.STARTED) {
        if (autoStopInterval > 0 && past(sandbox.lastActivityAt, autoStopInterval))
          await sandboxes.stop(sandbox);
      } else if (sandbox.state === SandboxState.STOPPED) {
        if (autoDeleteInterval >= 0 && past(sandbox.stoppedAt, autoDeleteInterval))
          await sandboxes.destroy(sandbox);
      }
    }
  };
  const timer = setInterval(() => void look().catch(failed), Math.max(20, Math.min(1_000, minuteMs / 4)));
  timer.unref();
  return { stop: () => clearInterval(timer) };
}
