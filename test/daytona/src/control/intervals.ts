import { SandboxState } from "@daytona/api-client";
import type { Sandboxes } from "./sandboxes/sandboxes.js";

/**
 * Stops sandboxes that were inactive for too long, and deletes those that were stopped for too long or have exceeded
 * their time to live.
 */
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
