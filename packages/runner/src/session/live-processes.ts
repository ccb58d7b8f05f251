import { inOffer, offerUnderWay, ofOffer, outsideOffers, type PluginOffer } from "@ambit/core";
import type { Command, FetchHandler, Process, Sandbox } from "@ambit/core/plugin";
import { settlesWithin } from "../lifetime/linked-abort.js";

/** The live processes that were spawned in a sandbox, without their children. */
export class LiveProcesses {
  readonly #live = new Set<Process>();
  /** Those that are being started. */
  readonly #starting = new Set<Promise<unknown>>();

  get count(): number {
    return this.#live.size;
  }

  /**
   * Wraps the sandbox so that its processes are known, and that what its methods start is its backend's, even if another
   * plugin calls them.
   */
  of(sandbox: Sandbox, backend: PluginOffer): Sandbox {
    const spawn = async (command: Command) => {
      const starting = inOffer(backend, () => sandbox.spawn(command));
      this.#starting.add(starting);
      try {
        const process = await starting;
        this.#live.add(process);
        const forget = () => this.#live.delete(process);
        process.exit.then(forget, forget);
        return process;
      } finally {
        this.#starting.delete(starting);
      }
    };
    const expose = (handler: FetchHandler) => {
      const owner = offerUnderWay();
      const within = <Result>(call: () => Result) =>
        owner === undefined ? outsideOffers(call) : inOffer(owner, call);
      return inOffer(backend, () => sandbox.expose((request) => within(() => handler(request))));
    };
    return ofOffer(backend, sandbox, { spawn, expose });
  }

  /** Ends all of them, with what they started. Never rejects. @returns whether none is left within that time */
  async end(limitMs: number): Promise<boolean> {
    const ended = async () => {
      await Promise.allSettled(this.#starting);
      await Promise.allSettled([...this.#live].map((process) => Promise.all([process.kill(), process.exit])));
    };
    return (await settlesWithin(ended(), limitMs)) && this.count === 0;
  }
}
