import type { Server } from "node:net";
import type { Duplex } from "node:stream";
import type {
  Command,
  Evidence,
  Exposure,
  FetchHandler,
  FileEntry,
  ImageRootfs,
  Process,
  Sandbox,
  SandboxContents,
} from "@ambit/core/plugin";
import { SandboxFailed } from "@ambit/core/plugin";
import { ask } from "./ask.js";
import { type Bridge, closeBridge, leaveBridge } from "./bridge.js";
import { startProcess } from "./process.js";
import type { BridgeFacts, BridgeResumption, OwnPort, RemoteSandbox } from "./remote-sandbox.js";
import { done, insideContents } from "./replies.js";

export interface BridgedParts {
  readonly id: string;
  readonly workspace: string;
  readonly home: string;
  readonly evidence: () => Evidence;
  readonly image: ImageRootfs;
  readonly placeholders: () => Readonly<Record<string, string>>;
  readonly facts: BridgeFacts;
  readonly bridge: Bridge;
  /** Digest of the runner's files inside. Undefined if the sandbox can't be taken over. */
  readonly copied: readonly string[] | undefined;
  readonly isClosedUnclaimed: boolean;
  readonly letsRunnerIn: boolean;
  readonly environment: (command: Command) => Readonly<Record<string, string>>;
  /** Ends the platform's sandbox. */
  destroy(): Promise<void>;
}

/** A remote sandbox, over its bridge. */
export class BridgedSandbox implements RemoteSandbox {
  readonly confinement = "confined";
  readonly workspace: string;
  readonly home: string;
  readonly image: ImageRootfs;
  readonly facts: BridgeFacts;
  readonly #parts: BridgedParts;
  #closed: Promise<void> | undefined;

  constructor(parts: BridgedParts) {
    this.#parts = parts;
    this.workspace = parts.workspace;
    this.home = parts.home;
    this.image = parts.image;
    this.facts = parts.facts;
  }

  get evidence(): Evidence {
    return this.#parts.evidence();
  }

  get placeholders(): Readonly<Record<string, string>> {
    return this.#parts.placeholders();
  }

  async spawn(command: Command): Promise<Process> {
    this.#checkOpen();
    const env = { ...command.env, ...this.#parts.environment(command) };
    return await startProcess(this.#parts.bridge.channels, { ...command, env });
  }

  async writeFiles(files: readonly FileEntry[]): Promise<void> {
    this.#checkOpen();
    await Promise.all(
      files.map(({ path, content, executable = false }) =>
        ask(this.#parts.bridge.channels, "write", { path, executable }, done, bytesOf(content)),
      ),
    );
  }

  async readFile(path: string): Promise<Uint8Array> {
    this.#checkOpen();
    return (await ask(this.#parts.bridge.channels, "read", { path }, done)).content;
  }

  async expose(handler: FetchHandler): Promise<Exposure> {
    this.#checkOpen();
    return await this.#parts.bridge.exposures.expose(handler);
  }

  /** Absent where the backend's network isn't closed until a run has the sandbox. */
  get contents(): Sandbox["contents"] {
    return this.#parts.isClosedUnclaimed ? () => this.#contents() : undefined;
  }

  /** Absent where the backend lets no connection in. */
  get connect(): Sandbox["connect"] {
    return this.#parts.letsRunnerIn ? (port) => this.#connect(port) : undefined;
  }

  async #connect(port: number): Promise<Duplex> {
    this.#checkOpen();
    return await this.#parts.bridge.entrances.enter(port, this.#parts.id);
  }

  async #contents(): Promise<SandboxContents> {
    this.#checkOpen();
    return (await ask(this.#parts.bridge.channels, "contents", {}, insideContents)).reply;
  }

  async handOver(server: Server): Promise<OwnPort> {
    this.#checkOpen();
    return await this.#parts.bridge.exposures.handOver(server);
  }

  async forward(path: string): Promise<number> {
    this.#checkOpen();
    return await this.#parts.bridge.exposures.forward(path);
  }

  get resumption(): BridgeResumption | undefined {
    const { bridge, copied } = this.#parts;
    const { link } = bridge.connection;
    return link === undefined || copied === undefined ? undefined : { ...link, copied };
  }

  leave(): Promise<void> {
    this.#closed ??= leaveBridge(this.#parts.bridge);
    return this.#closed;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const { bridge, destroy } = this.#parts;
    try {
      await closeBridge(bridge);
    } finally {
      await destroy();
    }
  }

  #checkOpen(): void {
    if (this.#closed !== undefined) throw new SandboxFailed(`The sandbox ${this.#parts.id} is closed`);
  }
}

function bytesOf(content: string | Uint8Array): Uint8Array {
  return typeof content === "string" ? Buffer.from(content, "utf8") : content;
}
