import { type Log, SandboxFailed } from "@ambit/core/plugin";
import { isPassing, ServiceFailure } from "../platform/failure.js";
import type { Machine, SandboxOrder } from "../platform/service.js";
import { differences } from "./read-back.js";
import { asMissing, endOf } from "./remote-machine.js";

interface WatchOptions {
  readonly machine: Machine;
  readonly order: SandboxOrder;
  readonly everyMs: number;
  readonly log: Log;
  /** Called at most once; nothing is watched afterwards. */
  onFailure(failure: SandboxFailed): void;
}

/**
 * Keeps a sandbox awake while it is open, and checks it: it fails if the sandbox ended or its limits changed. Returns a
 * function that ends the watch.
 */
export function watch({ machine, order, everyMs, log, onFailure }: WatchOptions): () => void {
  // Three times within the platform's own limit, so that one lost request doesn't matter.
  const touchMs = (order.autoStopMinutes * 60_000) / 3;
  const intervalMs = Math.min(everyMs, touchMs);
  let touchedAt = performance.now();
  let over = false;
  let timer: NodeJS.Timeout;

  const look = async (): Promise<SandboxFailed | undefined> => {
    try {
      if (performance.now() + intervalMs - touchedAt > touchMs) {
        await machine.touch();
        touchedAt = performance.now();
      }
      const view = await machine.refresh();
      const changed = differences(order, view).filter(({ isLimit }) => isLimit);
      if (changed.length === 0) return endOf(view);
      return (
        endOf(view) ??
        new SandboxFailed(
          `Daytona: the sandbox's limits were changed: ${changed.map(({ text }) => text).join("; ")}`,
        )
      );
    } catch (error) {
      if (error instanceof ServiceFailure && !isPassing(error)) return asMissing(error);
      log.warn({ sandbox: machine.name, error }, "the state of an open sandbox couldn't be read");
      return undefined;
    }
  };
  const next = () => {
    timer = setTimeout(async () => {
      const failure = await look();
      if (over) return;
      if (failure === undefined) return next();
      over = true;
      onFailure(failure);
    }, intervalMs).unref();
  };
  next();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}
