import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type {
  Command,
  Evidence,
  Exposure,
  FetchHandler,
  FileEntry,
  Log,
  Process,
  Sandbox,
} from "@ambit/core/plugin";
import { SandboxFailed } from "@ambit/core/plugin";
import { exposeOnLoopback } from "../expose/channel.js";
import { SessionFiles } from "../folders/session-files.js";
import type { SessionFolder } from "../folders/session-folder.js";
import { killMarked, markOf } from "../process/marked-processes.js";
import { spawnUnconfined } from "./spawn.js";

/** A session's folders on the host, and processes that nothing confines. */
export class UnconfinedSandbox implements Sandbox {
  readonly confinement = "unconfined";
  readonly evidence: Evidence = { confinement: "unconfined" };
  readonly workspace: string;
  readonly home: string;
  readonly #folder: SessionFolder;
  readonly #files: SessionFiles;
  readonly #runnerKey: string;
  readonly #id: string;
  readonly #log: Log;
  readonly #processes = new Set<Process>();
  readonly #exposures = new Set<Exposure>();
  #spawned = 0;
  #closed: Promise<void> | undefined;

  constructor(options: { folder: SessionFolder; runnerKey: string; id: string; log: Log }) {
    this.#folder = options.folder;
    this.#runnerKey = options.runnerKey;
    this.#id = options.id;
    this.#log = options.log;
    this.workspace = options.folder.workspace;
    this.home = options.folder.home;
    this.#files = new SessionFiles(
      [this.workspace, this.home].map((path) => ({ inside: path, outside: path })),
    );
  }

  async spawn(command: Command): Promise<Process> {
    this.#checkOpen();
    const number = ++this.#spawned;
    const own = join(this.#folder.path, `process-${number}`);
    const scratch = join(own, "tmp");
    const toolHome = join(own, "home");
    for (const path of [own, scratch, toolHome]) await mkdir(path, { mode: 0o700 });
    const started = await spawnUnconfined(command, {
      cwd: this.workspace,
      home: command.role === "agent" ? this.home : toolHome,
      scratch,
      mark: markOf(this.#runnerKey, this.#id, number),
      onGone: async (stragglers) => {
        if (stragglers > 0)
          this.#log.warn({ sandbox: this.#id, stragglers }, "processes outlived their parent");
        await rm(own, { recursive: true, force: true, maxRetries: 3 });
      },
    });
    this.#processes.add(started);
    const forget = () => this.#processes.delete(started);
    started.exit.then(forget, forget);
    if (this.#closed !== undefined) {
      await started.kill();
      this.#checkOpen();
    }
    return started;
  }

  async writeFiles(files: readonly FileEntry[]): Promise<void> {
    this.#checkOpen();
    await this.#files.write(files);
  }

  async readFile(path: string): Promise<Uint8Array> {
    this.#checkOpen();
    return this.#files.read(path);
  }

  async expose(handler: FetchHandler): Promise<Exposure> {
    this.#checkOpen();
    const exposure = await exposeOnLoopback(handler);
    this.#exposures.add(exposure);
    return {
      ...exposure,
      close: async () => {
        this.#exposures.delete(exposure);
        await exposure.close();
      },
    };
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#processes].map((started) => started.kill()));
    await killMarked(markOf(this.#runnerKey, this.#id));
    await Promise.all([...this.#exposures].map((exposure) => exposure.close()));
    await this.#folder.remove();
  }

  #checkOpen(): void {
    if (this.#closed !== undefined) throw new SandboxFailed(`The sandbox ${this.#id} is closed`);
  }
}
