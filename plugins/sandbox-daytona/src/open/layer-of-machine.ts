import { foldersOf, type RemotePlatform, type RemoteSandbox, type SessionFolders } from "@ambit/bridge";
import { type LayerUse, type Log, SandboxFailed, unlessAborted } from "@ambit/core/plugin";
import type { Account } from "../account.js";
import { checkFiles, makeFolders, markFiles } from "../layers/files-of-layer.js";
import { LayerSnapshots } from "../layers/layer-snapshots.js";
import { bridgeSettings } from "./bridge-settings.js";
import type { StartedMachine } from "./start-machine.js";

/** A sandbox whose workspace and home begin as a layer, or become one. */
export class LayerOfMachine {
  readonly #account: Account;
  readonly #started: StartedMachine;
  readonly #use: LayerUse;
  readonly #log: Log;
  readonly #folders: SessionFolders;
  readonly #closed = new AbortController();
  #keeping: Promise<void> | undefined;

  constructor(account: Account, started: StartedMachine, use: LayerUse, log: Log) {
    this.#account = account;
    this.#started = started;
    this.#use = use;
    this.#log = log;
    const { folderName } = bridgeSettings;
    this.#folders = foldersOf({ spec: { id: folderName }, bridge: account.config.bridge, folderName });
  }

  /** Of the bridge: workspace and home are there before it, and stay while they become the layer. */
  get platform(): RemotePlatform {
    const { machine, platform } = this.#started;
    return {
      openPipe: (argv, signal) => platform.openPipe(argv, signal),
      upload: (path, content, signal) => platform.upload(path, content, signal),
      ready: async () => {
        if (this.#use.use === "make") await makeFolders(machine, this.#folders);
      },
      destroy: () => (this.#keeping === undefined ? platform.destroy() : Promise.resolve()),
    };
  }

  /** @throws SandboxFailed where the platform made the sandbox without the layer's files */
  async check(): Promise<void> {
    if (this.#use.use !== "begin") return;
    try {
      await checkFiles(this.#started.machine, this.#folders, this.#use.name);
    } catch (error) {
      this.#account.layers.failed();
      throw error;
    }
  }

  /** Ends the sandbox, and makes its files the layer. @throws SandboxFailed; nothing is kept then */
  keep(sandbox: RemoteSandbox): Promise<void> {
    this.#keeping ??= this.#keep(sandbox);
    return this.#keeping;
  }

  /** Also while it is being kept: then it isn't. */
  async close(sandbox: RemoteSandbox): Promise<void> {
    if (this.#keeping === undefined) return await sandbox.close();
    this.#closed.abort(new SandboxFailed("Daytona: the sandbox was closed before it was a layer"));
    await this.#keeping.catch(() => undefined);
  }

  async #keep(sandbox: RemoteSandbox): Promise<void> {
    const { machine, platform } = this.#started;
    const { config } = this.#account;
    const { signal } = this.#closed;
    try {
      // Everything that runs inside ends with the bridge.
      await sandbox.close();
      const snapshots = new LayerSnapshots(await this.#account.service(), config);
      await unlessAborted(signal, () => markFiles(machine, this.#folders, config.bridge, this.#use.name));
      await snapshots.keep(this.#use.name, machine, signal);
      // The layer is there: it can be used although others can't be removed.
      await snapshots.evict().catch((error: unknown) => {
        this.#log.warn({ error }, "snapshots of earlier environments couldn't be removed");
      });
    } catch (error) {
      if (!signal.aborted) this.#account.layers.failed();
      throw error;
    } finally {
      await platform.destroy();
    }
  }
}
