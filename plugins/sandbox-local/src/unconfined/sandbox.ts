import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { SafeSessionFiles } from "@ambit/backend-kit/safe-fs";
import type { Command, Evidence, Log, Process } from "@ambit/core/plugin";
import type { RunnerFolder } from "../folders/runner-folder.js";
import type { SessionFolder } from "../folders/session-folder.js";
import { killMarked, markOf } from "../process/marked-processes.js";
import { SessionSandbox } from "../session-sandbox.js";
import { spawnUnconfined } from "./spawn.js";

/** A session's folders on the host, and unconfined processes. */
export class UnconfinedSandbox extends SessionSandbox {
  readonly confinement = "unconfined";
  readonly evidence: Evidence = { confinement: "unconfined" };
  readonly workspace: string;
  readonly home: string;
  readonly #folder: SessionFolder;
  readonly #runner: RunnerFolder;
  readonly #id: string;
  readonly #log: Log;
  #spawned = 0;
  /** Processes whose descendants haven't been ended yet. */
  #unended = 0;
  /** When the first process started; 0 if that isn't known. */
  #since: number | undefined;

  constructor(options: { folder: SessionFolder; runner: RunnerFolder; id: string; log: Log }) {
    const { folder, runner, id, log } = options;
    super(
      id,
      new SafeSessionFiles([folder.workspace, folder.home].map((path) => ({ guest: path, host: path }))),
    );
    this.#folder = folder;
    this.#runner = runner;
    this.#id = id;
    this.#log = log;
    this.workspace = folder.workspace;
    this.home = folder.home;
  }

  protected async start(command: Command): Promise<Process> {
    const number = ++this.#spawned;
    this.#unended += 1;
    const own = join(this.#folder.path, `process-${number}`);
    const scratch = join(own, "tmp");
    const toolHome = join(own, "home");
    for (const path of [own, scratch, toolHome]) await mkdir(path, { mode: 0o700 });
    return spawnUnconfined(command, {
      cwd: this.workspace,
      home: command.role === "agent" ? this.home : toolHome,
      scratch,
      mark: markOf(this.#runner.key, this.#id, number),
      onStarted: (started) => {
        this.#since ??= started ?? 0;
      },
      onEnded: async (stragglers) => {
        this.#unended -= 1;
        if (stragglers > 0)
          this.#log.warn({ sandbox: this.#id, stragglers }, "processes outlived their parent");
        await this.#runner.trash.discard(own);
      },
    });
  }

  protected async closeSession(): Promise<void> {
    if (this.#unended > 0) await killMarked(markOf(this.#runner.key, this.#id), { since: this.#since });
    await this.#folder.remove();
    this.#runner.trash.report(this.#log);
  }
}
