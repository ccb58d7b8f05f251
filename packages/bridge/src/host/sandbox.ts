import { createHash, type Hash } from "node:crypto";
import { lstat, readdir } from "node:fs/promises";
import type { Server } from "node:net";
import { join } from "node:path/posix";
import type { Duplex } from "node:stream";
import {
  type Command,
  type Evidence,
  type Exit,
  type Exposure,
  type FetchHandler,
  type FileEntry,
  type ImageRootfs,
  type Process,
  type RequiredPath,
  type Sandbox,
  type SandboxContents,
  SandboxFailed,
  type Scope,
  unlessAborted,
} from "@ambit/core/plugin";
import { create } from "tar";
import type { z } from "zod";
import {
  type BridgeFacts,
  type BridgeResumption,
  foldersOf,
  type OwnPort,
  type RemoteSandbox,
  type RemoteSandboxOptions,
} from "../remote-sandbox.js";
import type { Channel, Channels } from "../transport/channels.js";
import { streams } from "../transport/transport.js";
import { type Bridge, closeBridge, guestOf, leaveBridge, makeBridge, programName } from "./bridge.js";
import {
  ask,
  done,
  IncomingStream,
  insideContents,
  insideFacts,
  outgoingStream,
  refusal,
  runEnded,
  runStarted,
} from "./streams.js";

/** Does what `openRemoteSandbox` promises: brings the guest daemon into the sandbox, connects to it, and copies the runner's files. */
export async function openBridged(options: RemoteSandboxOptions, scope: Scope): Promise<RemoteSandbox> {
  const { platform } = options;
  const guest = await guestOf(options);
  const { folder, program } = guest;
  const bridge = makeBridge(options, guest);
  try {
    await unlessAborted(scope.signal, async () => await platform.ready?.(scope.signal));
    await uploadFiles(options, folder, program.content, scope.signal);
    await bridge.connection.open(scope.signal);
    return await unlessAborted(scope.signal, () => prepareSandbox(options, folder, bridge));
  } catch (error) {
    // The backend removes a sandbox that can't be continued.
    if (options.takeover?.resume !== undefined) {
      await leaveBridge(bridge);
      throw error;
    }
    try {
      await closeBridge(bridge);
    } finally {
      await platform.destroy();
    }
    throw error;
  }
}

const archiveName = "copies.tgz";

async function uploadFiles(
  options: RemoteSandboxOptions,
  folder: string,
  program: Uint8Array,
  signal: AbortSignal,
): Promise<void> {
  const { platform, spec, bridge } = options;
  const upload = (name: string, content: Uint8Array) =>
    unlessAborted(signal, () => platform.upload(join(folder, name), content, signal));
  // The input of a direct pipe, and of a first one, begins with the guest daemon.
  const isCarried =
    "openDirectPipe" in platform || "firstPipe" in platform || options.takeover?.resume !== undefined;
  if (!isCarried) await upload(programName, program);
  if (needsCopies(options) && !("firstPipe" in platform))
    await upload(archiveName, await archiveOf(spec.requiredPaths, bridge.copyBytes));
}

/** Brings the runner's files in over a first pipe, which exists already; on other platforms they were uploaded. */
async function unpackCopies(
  options: RemoteSandboxOptions,
  folder: string,
  into: string,
  { channels }: Bridge,
): Promise<void> {
  if (!needsCopies(options)) return;
  const { platform, spec, bridge } = options;
  if ("firstPipe" in platform)
    await ask(channels, "unpack", { into }, done, await archiveOf(spec.requiredPaths, bridge.copyBytes));
  else await ask(channels, "unpack", { archive: join(folder, archiveName), into }, done);
}

/** Whether the runner's files still have to be copied into the sandbox. */
function needsCopies({ spec, copyRoot, takeover }: RemoteSandboxOptions): boolean {
  const copied = new Set(takeover?.resume?.copied);
  return copyRoot === undefined && spec.requiredPaths.some(({ path }) => !copied.has(path));
}

async function prepareSandbox(
  options: RemoteSandboxOptions,
  folder: string,
  bridge: Bridge,
): Promise<RemoteSandbox> {
  const copyRoot = options.copyRoot ?? join(folder, "copies");
  const [{ reply: facts }] = await Promise.all([
    ask(bridge.channels, "facts", {}, insideFacts),
    unpackCopies(options, folder, copyRoot, bridge),
  ]);
  if (options.spec.required.includes("environment.per-tool") && !facts.ownUsers) {
    throw new SandboxFailed(
      `environment.per-tool isn't possible in this sandbox: ${facts.whyShared ?? "no reason given"}`,
    );
  }
  return new BridgedSandbox(options, bridge, facts, copyRoot);
}

/** A remote sandbox, over its bridge. */
class BridgedSandbox implements RemoteSandbox {
  readonly confinement = "confined";
  readonly workspace: string;
  readonly home: string;
  readonly image: ImageRootfs;
  readonly facts: BridgeFacts;
  readonly #options: RemoteSandboxOptions;
  readonly #bridge: Bridge;
  /** The user id of the agent's processes. */
  readonly #uid: number;
  #closed: Promise<void> | undefined;

  constructor(
    options: RemoteSandboxOptions,
    bridge: Bridge,
    { uid, ...facts }: z.output<typeof insideFacts>,
    copyRoot: string,
  ) {
    const { imageName } = options;
    const { workspace, home } = foldersOf(options);
    this.#options = options;
    this.#bridge = bridge;
    this.#uid = uid;
    this.workspace = workspace;
    this.home = home;
    this.image = {
      ...(imageName === undefined ? {} : { name: imageName }),
      searchPath: facts.searchPath,
      copyRoot,
      mounted: options.copyRoot !== undefined,
    };
    this.facts = {
      whyShared: undefined,
      whyOpen: undefined,
      closedBy: undefined,
      ...facts,
    };
  }

  get evidence(): Evidence {
    const { evidence } = this.#options;
    const { ownUsers, node } = this.facts;
    return {
      ...(typeof evidence === "function" ? evidence() : evidence),
      uid: this.#uid,
      "bridge.ownUsers": ownUsers,
      "bridge.node": node,
    };
  }

  get placeholders(): Readonly<Record<string, string>> {
    return this.#options.placeholders?.() ?? {};
  }

  async spawn(command: Command): Promise<Process> {
    this.#checkOpen();
    const env = { ...command.env, ...this.#options.environment?.(command) };
    return await startProcess(this.#bridge.channels, { ...command, env });
  }

  async writeFiles(files: readonly FileEntry[]): Promise<void> {
    this.#checkOpen();
    await Promise.all(
      files.map(({ path, content, executable = false }) =>
        ask(this.#bridge.channels, "write", { path, executable }, done, bytesOf(content)),
      ),
    );
  }

  async readFile(path: string): Promise<Uint8Array> {
    this.#checkOpen();
    return (await ask(this.#bridge.channels, "read", { path }, done)).content;
  }

  async expose(handler: FetchHandler): Promise<Exposure> {
    this.#checkOpen();
    return await this.#bridge.exposures.expose(handler);
  }

  /** Absent where the backend's network isn't closed until a run has the sandbox. */
  get contents(): Sandbox["contents"] {
    return this.#options.isClosedUnclaimed === true ? () => this.#contents() : undefined;
  }

  /** Absent where the backend lets no connection in. */
  get connect(): Sandbox["connect"] {
    return this.#options.inbound !== undefined ? (port) => this.#connect(port) : undefined;
  }

  async #connect(port: number): Promise<Duplex> {
    this.#checkOpen();
    return await this.#bridge.entrances.enter(port, this.#options.spec.id);
  }

  async #contents(): Promise<SandboxContents> {
    this.#checkOpen();
    return (await ask(this.#bridge.channels, "contents", {}, insideContents)).reply;
  }

  async handOver(server: Server): Promise<OwnPort> {
    this.#checkOpen();
    return await this.#bridge.exposures.handOver(server);
  }

  async forward(path: string): Promise<number> {
    this.#checkOpen();
    return await this.#bridge.exposures.forward(path);
  }

  get resumption(): BridgeResumption | undefined {
    const { link } = this.#bridge.connection;
    const { spec, takeover } = this.#options;
    if (link === undefined || takeover === undefined) return undefined;
    return { ...link, copied: spec.requiredPaths.map(({ path }) => path) };
  }

  leave(): Promise<void> {
    this.#closed ??= leaveBridge(this.#bridge);
    return this.#closed;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    try {
      await closeBridge(this.#bridge);
    } finally {
      await this.#options.platform.destroy();
    }
  }

  #checkOpen(): void {
    if (this.#closed !== undefined) throw new SandboxFailed(`The sandbox ${this.#options.spec.id} is closed`);
  }
}

function bytesOf(content: string | Uint8Array): Uint8Array {
  return typeof content === "string" ? Buffer.from(content, "utf8") : content;
}

/** The exit of a process whose real one is unknown. */
const lostExit: Exit = { code: null, signal: "SIGKILL" };

/**
 * Starts a process inside.
 * @throws SandboxFailed with the words of the guest daemon: no such program, no such folder.
 */
function startProcess(channels: Channels, command: Command): Promise<Process> {
  return new Promise((resolve, reject) => {
    const stdout = new IncomingStream();
    const stderr = new IncomingStream();
    let settle: (exit: Exit) => void = () => undefined;
    const exit = new Promise<Exit>((settled) => {
      settle = settled;
    });
    const channel = channels.open("run", (opened) => ({
      data: (stream, bytes, taken) => (stream === streams.error ? stderr : stdout).push(bytes, taken),
      end: (stream) => (stream === streams.error ? stderr : stdout).end(),
      message: (message) => {
        const started = runStarted.safeParse(message);
        if (started.success) return resolve(processOn(opened, started.data.started));
        const ended = runEnded.safeParse(message);
        if (ended.success) return settle(ended.data.exit);
        const refused = refusal.safeParse(message);
        const why = refused.success
          ? refused.data.refused
          : "the bridge inside gave no answer that can be read";
        reject(new SandboxFailed(`${command.argv[0]} can't be started: ${why}`));
        opened.close();
      },
      closed: () => {
        stdout.end();
        stderr.end();
        settle(lostExit);
        reject(new SandboxFailed("The sandbox is closed, or was lost"));
      },
    }));
    const kill = async (signal: "SIGTERM" | "SIGKILL" = "SIGKILL") => {
      if (!channel.isClosed) await channel.send({ kill: signal });
      if (signal === "SIGKILL") await exit;
    };
    // The guest daemon ends a process whose channel is closed before it has started.
    let abort = () => {
      reject(command.signal?.reason);
      channel.close();
    };
    const processOn = (opened: Channel, evidence: Evidence): Process => {
      abort = () => void kill();
      return {
        stdin: outgoingStream(opened, streams.main),
        stdout: stdout.stream,
        stderr: stderr.stream,
        evidence,
        exit,
        kill,
      };
    };
    const { argv, env, cwd, role = "tool", signal } = command;
    const onAbort = () => abort();
    if (signal?.aborted === true) return onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    void exit.then(() => signal?.removeEventListener("abort", onAbort));
    channel.send({ argv, env, cwd, role }).catch(reject);
  });
}

interface Archive {
  /** Digest of the files' paths, sizes and times. */
  readonly fingerprint: string;
  readonly content: Promise<Uint8Array>;
}

/** The last archive: an agent's files are the same in most sandboxes, and packing them takes seconds. */
let lastArchive: Archive | undefined;

/**
 * The runner's files for a sandbox, as one gzipped archive with their absolute paths.
 * @throws SandboxFailed when they are more than a pipe should carry.
 */
export async function archiveOf(
  requiredPaths: readonly RequiredPath[],
  maxBytes: number,
): Promise<Uint8Array> {
  const digest = createHash("sha256");
  let bytes = 0;
  for (const { path, what } of requiredPaths) {
    bytes += await addToDigest(path, digest);
    if (bytes > maxBytes) {
      throw new SandboxFailed(
        `${what} is larger than the ${maxBytes} bytes that are copied into a sandbox: make it part of the image`,
      );
    }
  }
  const fingerprint = digest.digest("hex");
  if (lastArchive?.fingerprint === fingerprint) return await lastArchive.content;
  const archive: Archive = { fingerprint, content: pack(requiredPaths) };
  lastArchive = archive;
  try {
    return await archive.content;
  } catch (error) {
    if (lastArchive === archive) lastArchive = undefined;
    throw error;
  }
}

async function pack(requiredPaths: readonly RequiredPath[]): Promise<Uint8Array> {
  const paths = requiredPaths.map(({ path }) => path.replace(/^\/+/, ""));
  const pieces: Uint8Array[] = [];
  // The archive has neither the runner's owners nor its times.
  for await (const piece of create({ cwd: "/", gzip: true, portable: true, preservePaths: false }, paths)) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Adds a file, or all files below a folder. @returns their bytes in all */
async function addToDigest(path: string, digest: Hash): Promise<number> {
  const stats = await lstat(path);
  digest.update(`${path}\0${stats.size}\0${stats.mtimeMs}\0${stats.ino}\0`);
  if (!stats.isDirectory()) return stats.size;
  let bytes = 0;
  for (const name of (await readdir(path)).sort()) bytes += await addToDigest(join(path, name), digest);
  return bytes;
}
