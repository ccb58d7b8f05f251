import type { SessionFiles } from "@ambit/backend-kit/safe-fs";
import {
  type Command,
  type Evidence,
  type Exposure,
  type FetchHandler,
  type FileEntry,
  type Process,
  type Sandbox,
  SandboxFailed,
} from "@ambit/core/plugin";
import { exposeOnLoopback } from "./expose/channel.js";

/** What confined and unconfined sandboxes have in common: they track what is open, and close all of it. */
export abstract class SessionSandbox implements Sandbox {
  abstract readonly confinement: Sandbox["confinement"];
  abstract readonly workspace: string;
  abstract readonly home: string;
  abstract readonly evidence: Evidence;
  readonly #id: string;
  readonly #files: SessionFiles;
  readonly #starting = new Set<Promise<unknown>>();
  readonly #processes = new Set<Process>();
  readonly #exposures = new Set<Exposure>();
  #closed: Promise<void> | undefined;

  /** @param id for messages. */
  constructor(id: string, files: SessionFiles) {
    this.#id = id;
    this.#files = files;
  }

  /** Starts a command. The caller checks that the sandbox is open, and tracks the process. */
  protected abstract start(command: Command): Promise<Process>;

  /** Closes the session itself, when no process and no exposure of it is left. */
  protected abstract closeSession(): Promise<void>;

  async spawn(command: Command): Promise<Process> {
    this.#checkOpen();
    const starting = this.start(command);
    this.#starting.add(starting);
    try {
      const started = await starting;
      this.#processes.add(started);
      const forget = () => this.#processes.delete(started);
      started.exit.then(forget, forget);
      if (this.#closed !== undefined) {
        await started.kill();
        this.#checkOpen();
      }
      return started;
    } finally {
      this.#starting.delete(starting);
    }
  }

  async writeFiles(files: readonly FileEntry[]): Promise<void> {
    this.#checkOpen();
    await this.#files.write(files);
  }

  async readFile(path: string): Promise<Uint8Array> {
    this.#checkOpen();
    return this.#files.read(path);
  }

  /** Paths of what is in the session's folders. */
  protected listFiles(): Promise<readonly string[]> {
    this.#checkOpen();
    return this.#files.list();
  }

  async expose(handler: FetchHandler): Promise<Exposure> {
    this.#checkOpen();
    const exposure = await this.exposeInside(handler);
    this.#exposures.add(exposure);
    return {
      ...exposure,
      close: async () => {
        this.#exposures.delete(exposure);
        await exposure.close();
      },
    };
  }

  /** Makes a handler reachable for the session's processes. Default: on the host's loopback. */
  protected exposeInside(handler: FetchHandler): Promise<Exposure> {
    return exposeOnLoopback(handler);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const killAll = () => Promise.all([...this.#processes].map((started) => started.kill()));
    await killAll();
    // What was being started meanwhile finds the sandbox closed and ends.
    await Promise.allSettled(this.#starting);
    await killAll();
    await Promise.all([...this.#exposures].map((exposure) => exposure.close()));
    await this.closeSession();
  }

  #checkOpen(): void {
    if (this.#closed !== undefined) throw new SandboxFailed(`The sandbox ${this.#id} is closed`);
  }
}
