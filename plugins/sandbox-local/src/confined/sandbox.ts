import type {
  Command,
  Evidence,
  Exposure,
  FetchHandler,
  FileEntry,
  Process,
  Sandbox,
} from "@ambit/core/plugin";
import { SandboxFailed } from "@ambit/core/plugin";
import { exposeOnLoopback } from "../expose/channel.js";
import { SessionFiles } from "../folders/session-files.js";
import { channelUrl, inside } from "./inside.js";
import type { ConfinedSession } from "./session.js";
import { spawnConfined } from "./spawn.js";

/** A session whose every process has a jail of its own. */
export class ConfinedSandbox implements Sandbox {
  readonly confinement = "confined";
  readonly workspace = inside.workspace;
  readonly home = inside.agentHome;
  readonly evidence: Evidence;
  readonly #session: ConfinedSession;
  readonly #files: SessionFiles;
  readonly #starting = new Set<Promise<unknown>>();
  readonly #processes = new Set<Process>();
  readonly #exposures = new Set<Exposure>();
  #closed: Promise<void> | undefined;

  /** @param evidence what a first jail of this session showed. */
  constructor(session: ConfinedSession, evidence: Evidence) {
    this.#session = session;
    this.evidence = evidence;
    const { folder, user, spec } = session;
    const home = { inside: inside.agentHome, outside: folder.home };
    const workspace = { inside: inside.workspace, outside: folder.workspace };
    this.#files = new SessionFiles(
      spec.boundary.filesystem.mode === "off" ? [home] : [workspace, home],
      user,
    );
  }

  /** Folders of the session's cgroups; empty when nothing is limited. */
  get groupPaths(): readonly string[] {
    return this.#session.groups?.paths ?? [];
  }

  async spawn(command: Command): Promise<Process> {
    this.#checkOpen();
    const starting = spawnConfined(this.#session, command);
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

  async expose(handler: FetchHandler): Promise<Exposure> {
    this.#checkOpen();
    const { channel } = this.#session;
    if (channel !== undefined) return channel.expose(channelUrl, handler);
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
    // What was being started meanwhile finds the sandbox closed, and ends by itself.
    await Promise.allSettled(this.#starting);
    await Promise.all([...this.#processes].map((started) => started.kill()));
    await Promise.all([...this.#exposures].map((exposure) => exposure.close()));
    await this.#session.close();
  }

  #checkOpen(): void {
    if (this.#closed !== undefined) throw new SandboxFailed(`The sandbox ${this.#session.spec.id} is closed`);
  }
}
