import type { Process, ToolScope } from "@ambit/core/plugin";
import type { Runtime } from "./program.js";
import { feed } from "./streams.js";

/** Starts a runtime's interpreter in its own jail: it waits at its bootstrap's first read for its call. */
export type StartInterpreter = (runtime: Runtime, signal: AbortSignal) => Promise<Process>;

interface Waiting {
  /** Undefined when it couldn't be started. */
  readonly child: Promise<Process | undefined>;
  readonly stop: AbortController;
}

/**
 * The interpreters that wait for a run's next calls, one of each runtime at most. Each gets one call and ends with it:
 * what is saved is the wait for a jail and its interpreter, and nothing is shared. It is started without anything of
 * any tool, which all comes with the call.
 */
export class WaitingInterpreters {
  readonly #waiting = new Map<Runtime, Waiting>();
  readonly #log: ToolScope["log"];
  #closed = false;

  constructor(log: ToolScope["log"]) {
    this.#log = log;
  }

  /** Keeps one waiting from now on. If it can't be started, the next call reports why. */
  prepare(runtime: Runtime, start: StartInterpreter): void {
    if (this.#closed || this.#waiting.has(runtime)) return;
    const stop = new AbortController();
    const child = start(runtime, stop.signal).catch((error: unknown) => {
      this.#log.debug({ runtime, error }, "no interpreter could be started in advance");
      return undefined;
    });
    this.#waiting.set(runtime, { child, stop });
  }

  /**
   * Gives a call to the one that waits, or is just coming up, which ends when `signal` aborts. Undefined when there is
   * none, or it died before it had the whole call: then nothing of the call was run.
   */
  async give(runtime: Runtime, call: string, signal: AbortSignal): Promise<Process | undefined> {
    const waiting = this.#waiting.get(runtime);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(runtime);
    const stop = () => waiting.stop.abort(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const child = await waiting.child;
    if (child === undefined || (await feed(child.stdin, call))) return child;
    await end(child);
    return undefined;
  }

  /** Resolves when none waits any more, and none will. */
  async close(): Promise<void> {
    this.#closed = true;
    const left = [...this.#waiting.values()];
    this.#waiting.clear();
    await Promise.all(
      left.map(async ({ child, stop }) => {
        stop.abort();
        const started = await child;
        if (started !== undefined) await end(started);
      }),
    );
  }
}

/** What is left in its pipes isn't read. */
async function end(child: Process): Promise<void> {
  await child.kill();
  await child.exit;
  await Promise.allSettled([child.stdin.abort(), child.stdout.cancel(), child.stderr.cancel()]);
}
