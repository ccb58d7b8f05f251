import { checkedReturn, pluginReturns } from "@ambit/core";
import { type Actor, type Finding, type Log, newPluginAbort, type Scope } from "@ambit/core/plugin";

/** The kit's scope: closes in reverse what was opened in it, and reports what couldn't be closed. */
export class KitScope implements Scope {
  readonly #abort = newPluginAbort();
  readonly #closers: (() => void | Promise<void>)[] = [];

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  defer(close: () => void | Promise<void>): void {
    this.#closers.push(close);
  }

  /** @throws AggregateError of everything that failed to close; the rest is closed nevertheless. */
  async close(): Promise<void> {
    this.#abort.abort();
    const failures: unknown[] = [];
    for (const close of this.#closers.splice(0).reverse()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, "the kit couldn't close what it had opened");
  }
}

/** The server's default. */
const probeTimeoutMs = 120_000;

/** Probes like the server: with a signal of the same kind, aborted when it takes too long. */
export async function probeWithin(actor: Actor<never>, ms = probeTimeoutMs): Promise<readonly Finding[]> {
  const limit = newPluginAbort();
  const timer = setTimeout(() => limit.abort(new Error(`the probe took longer than ${ms} ms`)), ms);
  try {
    const returned: unknown = await actor.probe(limit.signal);
    return checkedReturn(actor, "probe", pluginReturns.findings, returned);
  } finally {
    clearTimeout(timer);
  }
}

/** The kit's reports are separate; a backend's log entries on attacks are noise. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
