import { join } from "node:path/posix";
import { foldersOf, type RemotePlatform, type RemoteSandbox, type SessionFolders } from "@ambit/bridge";
import { type LayerUse, type Log, SandboxFailed, unlessAborted } from "@ambit/core/plugin";
import type { Account } from "../account.js";
import type { DaytonaConfig } from "../config.js";
import { bridgeSettings } from "../inside/daemon.js";
import { LayerSnapshots } from "../layers/layer-snapshots.js";
import { asSandboxFailed } from "../platform/failure.js";
import { withRetries } from "../platform/retries.js";
import type { Machine } from "../platform/service.js";
import { shellLine } from "../platform/shell-line.js";
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

/** Names the layer that the files beside it are of. */
const markName = "layer";
/** Milliseconds. */
const executeMs = 60_000;

/** Makes the empty folders that become a layer. @throws SandboxFailed */
export async function makeFolders(machine: Machine, { workspace, home }: SessionFolders): Promise<void> {
  const script = 'umask 022 && mkdir -p "$1" "$2"';
  await execute(machine, ["/bin/sh", "-c", script, "sh", workspace, home], "making a layer's folders");
}

/** On one line: the platform's shell takes no other. */
const markProgram = [
  'const fs = require("node:fs"); const { join } = require("node:path");',
  "const { folder, kept, mark, layer, firstUser } = JSON.parse(process.argv[1]);",
  "const remove = (path) => fs.rmSync(path, { recursive: true, force: true });",
  "for (const name of fs.readdirSync(folder)) if (!kept.includes(join(folder, name))) remove(join(folder, name));",
  'for (const shared of ["/tmp", "/var/tmp", "/run/lock"]) if (fs.existsSync(shared))',
  "for (const name of fs.readdirSync(shared))",
  "if (fs.lstatSync(join(shared, name)).uid >= firstUser) remove(join(shared, name));",
  "fs.writeFileSync(join(folder, mark), layer);",
].join(" ");

/**
 * Leaves nothing of the session but workspace and home, and marks them. To be called when its processes have ended.
 * @throws SandboxFailed
 */
async function markFiles(
  machine: Machine,
  { folder, workspace, home }: SessionFolders,
  { node, firstUser }: DaytonaConfig["bridge"],
  layer: string,
): Promise<void> {
  const settings = JSON.stringify({ folder, kept: [workspace, home], mark: markName, layer, firstUser });
  await execute(machine, [node, "-e", markProgram, settings], "marking a layer's files");
}

/** @throws SandboxFailed where the sandbox hasn't begun with the layer's files */
async function checkFiles(machine: Machine, { folder }: SessionFolders, layer: string): Promise<void> {
  const script = '[ "$(cat "$1")" = "$2" ]';
  const argv = ["/bin/sh", "-c", script, "sh", join(folder, markName), layer];
  await execute(machine, argv, "beginning with a layer's files");
}

/** @param argv of a command that may run twice: its response may be lost. */
async function execute(machine: Machine, argv: readonly string[], tried: string): Promise<void> {
  const once = () => machine.execute(shellLine(argv), executeMs);
  const { exitCode, output } = await withRetries(once, { retries: 3, limitMs: executeMs }).catch(
    (error: unknown) => {
      throw asSandboxFailed(error, tried);
    },
  );
  if (exitCode === 0) return;
  throw new SandboxFailed(`Daytona: ${tried} failed (${output.trim().slice(0, 200) || `exit ${exitCode}`})`);
}
