import { messageOf } from "@ambit/core";
import type { Log, Sandbox, SandboxLayers } from "@ambit/core/plugin";

export interface LayersOptions {
  /** The backend's. */
  readonly kept: SandboxLayers;
  /** Opens the sandbox that becomes a layer. */
  readonly open: (name: string) => Promise<Sandbox>;
  readonly log: Log;
}

/** Layers with what is kept: they save time, so what fails here is logged, and the files are copied. */
export class Layers {
  readonly #options: LayersOptions;

  constructor(options: LayersOptions) {
    this.#options = options;
  }

  /** @throws SandboxFailed; the signal's reason */
  system(signal: AbortSignal): Promise<string | undefined> {
    return this.#options.kept.system(signal);
  }

  /**
   * Whether there is such a layer now. One that is missing is made.
   * @param write puts its files into a new sandbox
   * @throws the signal's reason
   */
  async ensure(name: string, write: (into: Sandbox) => Promise<void>, signal: AbortSignal): Promise<boolean> {
    const { kept, log } = this.#options;
    try {
      if (!(await kept.has(name, signal))) await this.#make(name, write);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ error: messageOf(error) }, "a prepared environment couldn't be kept as a layer");
      return false;
    }
  }

  async #make(name: string, write: (into: Sandbox) => Promise<void>): Promise<void> {
    const sandbox = await this.#options.open(name);
    try {
      if (sandbox.keepAsLayer === undefined) throw new TypeError("the sandbox can't become a layer");
      await write(sandbox);
      await sandbox.keepAsLayer();
    } catch (error) {
      await sandbox.close();
      throw error;
    }
  }
}
