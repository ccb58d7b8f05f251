import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { SafeSessionFiles } from "@ambit/backend-kit/safe-fs";
import type { Command, Evidence, Exit, Log, Process } from "@ambit/core/plugin";
import { systemTrust, trustVariables } from "@ambit/egress/credentials";
import type { RunnerFolder, SessionFolder } from "./folders/data-folder.js";
import {
  checkCommand,
  descriptorTable,
  inheritableDescriptors,
  killMarked,
  markerVariable,
  markOf,
  ownSessions,
  pipesOf,
  signal,
  startChild,
  startOf,
} from "./process/host-processes.js";
import { SessionSandbox } from "./session-sandbox.js";

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
    const folder = join(this.#folder.path, `process-${number}`);
    const scratch = join(folder, "tmp");
    const toolHome = join(folder, "home");
    for (const path of [folder, scratch, toolHome]) await mkdir(path, { mode: 0o700 });
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
        await this.#runner.trash.discard(folder);
      },
    });
  }

  protected async closeSession(): Promise<void> {
    if (this.#unended > 0) await killMarked(markOf(this.#runner.key, this.#id), { since: this.#since });
    await this.#folder.remove();
    this.#runner.trash.report(this.#log);
  }
}

/** Milliseconds between SIGTERM and SIGKILL. */
const politeMs = 2_000;

/** What a command needs in addition to its own fields. */
interface UnconfinedPlace {
  readonly cwd: string;
  readonly home: string;
  readonly scratch: string;
  /** Used to find everything that the process started after it is gone. */
  readonly mark: string;
  /** Called with the result of `startOf`. */
  onStarted(started: number | undefined): void;
  /** Called once the process and everything it started are gone. */
  onEnded(stragglers: number): Promise<void>;
}

/** Starts a command on the host in a separate process group, with the variables it names, and those of the host's trust store. */
async function spawnUnconfined(command: Command, place: UnconfinedPlace): Promise<Process> {
  const [program, ...args] = command.argv;
  const trust = await systemTrust();
  const devNull = openSync("/dev/null", "r+");
  let child: ChildProcess;
  try {
    command.signal?.throwIfAborted();
    checkCommand(command);
    child = await startChild(
      program,
      args,
      {
        cwd: command.cwd ?? place.cwd,
        env: {
          HOME: place.home,
          TMPDIR: place.scratch,
          ...(trust && trustVariables(trust)),
          ...command.env,
          [markerVariable]: place.mark,
        },
        detached: true,
        stdio: [...descriptorTable(["pipe", "pipe", "pipe"] as const, inheritableDescriptors(), devNull)],
      },
      "session",
    );
  } catch (error) {
    await place.onEnded(0);
    throw error;
  } finally {
    closeSync(devNull);
  }
  if (child.pid !== undefined) ownSessions.add(child.pid);
  return new UnconfinedProcess(child, child.pid ?? 0, place, command.signal);
}

class UnconfinedProcess implements Process {
  readonly stdin: Process["stdin"];
  readonly stdout: Process["stdout"];
  readonly stderr: Process["stderr"];
  readonly evidence = { confinement: "unconfined" };
  readonly exit: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #group: number;

  constructor(child: ChildProcess, group: number, place: UnconfinedPlace, abort: AbortSignal | undefined) {
    this.#child = child;
    this.#group = group;
    const since = startOf(group);
    place.onStarted(since);
    const { stdin, stdout, stderr } = pipesOf(child);
    this.stdin = stdin;
    this.stdout = stdout;
    this.stderr = stderr;
    const onAbort = () => signal(-group, "SIGKILL");
    abort?.addEventListener("abort", onAbort, { once: true });
    this.exit = new Promise((resolve) => {
      child.once("exit", (code, name) => {
        abort?.removeEventListener("abort", onAbort);
        const settle = () => {
          ownSessions.delete(group);
          resolve({ code, signal: name });
        };
        killMarked(place.mark, { group, since })
          .then((stragglers) => place.onEnded(stragglers))
          .then(settle, settle);
      });
    });
    if (abort?.aborted) onAbort();
  }

  async kill(name: "SIGTERM" | "SIGKILL" = "SIGKILL"): Promise<void> {
    if (this.#running()) signal(-this.#group, name);
    if (name === "SIGTERM") {
      const timer = setTimeout(() => {
        if (this.#running()) signal(-this.#group, "SIGKILL");
      }, politeMs);
      await this.exit;
      clearTimeout(timer);
    }
    await this.exit;
  }

  /** Once the leader's exit is known, its number may belong to another process. */
  #running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }
}
