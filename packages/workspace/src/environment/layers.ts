import { messageOf } from "@ambit/core";
import { type Log, type Sandbox, type SandboxLayers, unlessAborted } from "@ambit/core/plugin";

/** The layers of one run's backend. */
export interface LayersOfRun {
  readonly kept: SandboxLayers;
  /** Opens the sandbox that becomes a layer. */
  readonly open: (name: string) => Promise<Sandbox>;
  readonly log: Log;
}

/** Makes layers of what is kept. They save time: what fails here is logged, and the files are copied. */
export class Layers {
  /** Those that a run of this process makes now, by name. */
  readonly #making = new Map<string, Promise<boolean>>();

  /**
   * Whether there is such a layer now. One that is missing is made, by one run for all that ask at the same time. Never rejects.
   * @param write puts its files into a new sandbox
   * @param signal gives it up: there is none then.
   */
  async ensure(
    { kept, open, log }: LayersOfRun,
    name: string,
    write: (into: Sandbox) => Promise<void>,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      return await unlessAborted(signal, async () => {
        const others = this.#making.get(name);
        if (others !== undefined) return await others;
        if (await kept.has(name, signal)) return true;
        return await this.#once(name, async () => {
          await make(await open(name), write);
          return true;
        });
      });
    } catch (error) {
      log.warn({ error: messageOf(error) }, "a prepared environment couldn't be kept as a layer");
      return false;
    }
  }

  async #once(name: string, act: () => Promise<boolean>): Promise<boolean> {
    const making = this.#making.get(name) ?? act();
    this.#making.set(name, making);
    try {
      return await making;
    } finally {
      this.#making.delete(name);
    }
  }
}

async function make(sandbox: Sandbox, write: (into: Sandbox) => Promise<void>): Promise<void> {
  try {
    if (sandbox.keepAsLayer === undefined) throw new TypeError("the sandbox can't become a layer");
    await write(sandbox);
    await sandbox.keepAsLayer();
  } catch (error) {
    await sandbox.close();
    throw error;
  }
}
