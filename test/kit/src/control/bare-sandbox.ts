import { once } from "node:events";
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Duplex } from "node:stream";
import type {
  Command,
  Evidence,
  Exposure,
  FetchHandler,
  FileEntry,
  Process,
  Sandbox,
} from "@ambit/core/plugin";
import { spawnBare } from "./bare-process.js";
import { serveOnLoopback } from "./loopback-server.js";
import type { HostUser } from "./unprivileged-user.js";

export interface BareOptions {
  /** Default: the kit's own user. */
  readonly user: HostUser | undefined;
  /** What the sandbox reports about itself: a lying backend reports `confined`. */
  readonly confinement: Sandbox["confinement"];
  /** Further variables of every process, such as the address of the open proxy. */
  readonly env: Readonly<Record<string, string>>;
  /** Default: none. */
  readonly placeholders?: Readonly<Record<string, string>>;
}

/** Two folders on the host and plain processes: it guards nothing, and its processes inherit everything. */
export class BareSandbox implements Sandbox {
  readonly workspace: string;
  readonly home: string;
  readonly confinement: Sandbox["confinement"];
  readonly evidence: Evidence;
  readonly placeholders: Readonly<Record<string, string>>;
  readonly #root: string;
  readonly #options: BareOptions;
  readonly #processes = new Set<Process>();
  readonly #exposures = new Set<Exposure>();

  private constructor(root: string, options: BareOptions) {
    this.#root = root;
    this.#options = options;
    this.workspace = join(root, "workspace");
    this.home = join(root, "home");
    this.confinement = options.confinement;
    this.placeholders = options.placeholders ?? {};
    const uid = options.user?.uid ?? process.getuid?.();
    this.evidence = uid === undefined ? {} : { uid };
  }

  static async open(options: BareOptions): Promise<BareSandbox> {
    const root = await mkdtemp(join(tmpdir(), "ambit-kit-bare-"));
    const sandbox = new BareSandbox(root, options);
    await chmod(root, 0o755);
    for (const folder of [sandbox.workspace, sandbox.home, join(root, "tmp")])
      await sandbox.#own(mkdir(folder), folder);
    return sandbox;
  }

  async spawn(command: Command): Promise<Process> {
    const env = {
      ...process.env,
      ...this.#options.env,
      HOME: this.home,
      TMPDIR: join(this.#root, "tmp"),
      ...command.env,
    };
    const started = await spawnBare(
      { ...command, env, cwd: command.cwd ?? this.workspace },
      this.#options.user,
    );
    this.#processes.add(started);
    return started;
  }

  async writeFiles(files: readonly FileEntry[]): Promise<void> {
    for (const { path, content, executable } of files) {
      // It is careless, but doesn't change the host.
      if (!resolve(path).startsWith(`${tmpdir()}/`)) throw new Error(`${path} is outside the test's folders`);
      await mkdir(dirname(path), { recursive: true });
      await this.#own(writeFile(path, content, { mode: executable ? 0o755 : 0o644 }), path);
      if (dirname(path) !== this.workspace) await this.#own(Promise.resolve(), dirname(path));
    }
  }

  async readFile(path: string): Promise<Uint8Array> {
    return readFile(path);
  }

  /** To any port of this host's loopback, whatever listens there, also after the end. */
  async connect(port: number): Promise<Duplex> {
    const connection = createConnection({ host: "127.0.0.1", port });
    await once(connection, "connect");
    return connection;
  }

  async expose(handler: FetchHandler): Promise<Exposure> {
    const exposure = await serveOnLoopback(handler);
    this.#exposures.add(exposure);
    return exposure;
  }

  /** Ends what it started itself, so that nothing of a control remains; the attack cleans up what detached. */
  async close(): Promise<void> {
    await Promise.all([...this.#processes].map((started) => started.kill()));
    await Promise.all([...this.#exposures].map((exposure) => exposure.close()));
    await rm(this.#root, { recursive: true, force: true, maxRetries: 5 });
  }

  async #own(made: Promise<unknown>, path: string): Promise<void> {
    await made;
    const { user } = this.#options;
    if (user !== undefined && path.startsWith(this.#root)) await chown(path, user.uid, user.gid);
  }
}
