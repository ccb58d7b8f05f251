/** The runner's side of a bridge: the guest daemon's program and settings, and what leads to it. */

import { readFile } from "node:fs/promises";
import { join } from "node:path/posix";
import { fileURLToPath } from "node:url";
import { resultWithin, SandboxFailed } from "@ambit/core/plugin";
import { pipeOfFirstCommand } from "../messages.js";
import {
  type BinaryPlatform,
  type BridgeLink,
  type DirectPlatform,
  foldersOf,
  type GuestOptions,
  type RemotePlatform,
  type RemoteSandboxOptions,
} from "../remote-sandbox.js";
import { ByteFormat, DirectTransport } from "../transport/byte-format.js";
import { Channels } from "../transport/channels.js";
import { LineFormat, type Transport } from "../transport/transport.js";
import {
  BridgeConnection,
  type BridgeConnectionOptions,
  ByteWriter,
  DirectConnection,
  LineWriter,
} from "./connection.js";
import { Entrances, Exposures } from "./connections.js";
import { ask, done } from "./streams.js";

/** Milliseconds for the guest daemon to end its processes, before the platform ends the sandbox. */
const shutdownMs = 2_000;

/** The runner's side. */
export interface Bridge {
  readonly connection: Pick<BridgeConnection<never>, "open" | "close" | "isOpen"> & {
    readonly link?: BridgeLink | undefined;
  };
  readonly channels: Channels;
  readonly exposures: Exposures;
  readonly entrances: Entrances;
}

export function makeBridge(options: RemoteSandboxOptions, guest: Guest): Bridge {
  const { platform, spec, bridge, takeover, inbound = () => [] } = options;
  const exposures: Exposures = new Exposures(() => channels, inbound);
  const entrances: Entrances = new Entrances(() => channels, inbound);
  const { transport, connect } = connectionMethodOf(platform, () => channels);
  const channels: Channels = new Channels("runner", transport, (kind, channel) =>
    kind === "connection" ? exposures.connected(channel) : undefined,
  );
  const connection = connect({
    guest,
    bridge,
    fence: takeover?.fence,
    resume: takeover?.resume,
    log: spec.log,
    onLost: (failure) => {
      exposures.close();
      entrances.close();
      channels.closeAll();
      spec.onFailure?.(failure);
    },
  });
  return { connection, channels, exposures, entrances };
}

interface ConnectOptions
  extends Pick<BridgeConnectionOptions<never>, "bridge" | "fence" | "resume" | "log" | "onLost"> {
  readonly guest: Guest;
}

interface ConnectionMethod {
  readonly transport: Transport;
  readonly connect: (options: ConnectOptions) => Bridge["connection"];
}

/** Over a permanent binary pipe, if the platform has one; else over consecutive pipes, binary if possible. */
function connectionMethodOf(
  platform: RemotePlatform | BinaryPlatform | DirectPlatform,
  channels: () => Channels,
): ConnectionMethod {
  if ("openDirectPipe" in platform) return directly(platform, channels);
  if ("openBinaryPipe" in platform) return inBytes(platform, channels);
  const format = new LineFormat("runner", (frame) => channels().deliver(frame));
  const connect = ({ guest: { program, settings }, ...connectionOptions }: ConnectOptions) =>
    new BridgeConnection({
      format,
      openPipe: async (signal) => {
        const argv = [
          ...smallNode(connectionOptions.bridge.node),
          program.path,
          "attach",
          ...settings,
        ] as const;
        const pipe = await platform.openPipe(argv, signal);
        return { pipe, format, newWriter: (failed) => new LineWriter(pipe, failed) };
      },
      ...connectionOptions,
    });
  return { transport: format.transport, connect };
}

function inBytes(platform: BinaryPlatform, channels: () => Channels): ConnectionMethod {
  const format = new ByteFormat({
    frame: (frame) => channels().deliver(frame),
    data: (channel, stream, bytes) => channels().deliverData(channel, stream, bytes),
  });
  let first = platform.firstPipe;
  const connect = ({ guest: { program, settings }, ...connectionOptions }: ConnectOptions) => {
    const openNext = async (signal: AbortSignal) => {
      // A first pipe that broke before its end answered may not have brought the program.
      if (platform.firstPipe !== undefined && connection.link === undefined)
        await platform.upload(program.path, program.content, signal);
      const argv = [
        ...smallNode(connectionOptions.bridge.node),
        program.path,
        "attach-bytes",
        ...settings,
      ] as const;
      return await platform.openBinaryPipe(argv, signal);
    };
    const connection: BridgeConnection<Uint8Array> = new BridgeConnection({
      format,
      openPipe: async (signal) => {
        const begun = first;
        first = undefined;
        const pipe = begun ?? (await openNext(signal));
        return { pipe, format, newWriter: (failed) => new ByteWriter(pipe, failed) };
      },
      ...connectionOptions,
    });
    return connection;
  };
  return { transport: format.transport, connect };
}

function directly(platform: DirectPlatform, channels: () => Channels): ConnectionMethod {
  let connection: DirectConnection | undefined;
  const transport = new DirectTransport({
    frame: (frame) => channels().deliver(frame),
    data: (channel, stream, bytes) => channels().deliverData(channel, stream, bytes),
    signal: (op, value) => connection?.receiveSignal(op, value),
  });
  const connect = ({ guest, ...connectionOptions }: ConnectOptions) => {
    connection = new DirectConnection({
      platform,
      argv: directCommand(connectionOptions.bridge.node, guest),
      program: guest.program.content,
      transport,
      ...connectionOptions,
    });
    return connection;
  };
  return { transport, connect };
}

/** Ends every stream and, if the guest daemon is still reachable, everything that runs inside. */
export async function closeBridge({ channels, connection, exposures, entrances }: Bridge): Promise<void> {
  exposures.close();
  entrances.close();
  if (connection.isOpen)
    await resultWithin(
      ask(channels, "shutdown", {}, done).catch(() => undefined),
      shutdownMs,
    );
  channels.closeAll();
  await connection.close();
}

/** Detaches from the sandbox, and leaves its contents to its next owner. */
export async function leaveBridge({ channels, connection, exposures, entrances }: Bridge): Promise<void> {
  exposures.close();
  entrances.close();
  channels.closeAll();
  await connection.close();
}

export const programName = "bridge.cjs";

/** The guest daemon of one sandbox. */
export interface Guest {
  /** Everything of the sandbox is below it. */
  readonly folder: string;
  readonly program: { readonly path: string; readonly content: Uint8Array };
  /** The program's arguments, after the mode. */
  readonly settings: readonly string[];
}

/** @throws SandboxFailed when it wasn't bundled. */
export async function guestOf(options: GuestOptions): Promise<Guest> {
  const { bridge, ownSystem, supervisor, workspace, hasFolders, unprivileged, takeover } = options;
  const { folder } = foldersOf(options);
  return {
    folder,
    program: { path: join(folder, programName), content: await guestDaemon() },
    settings: [
      folder,
      `${bridge.orphanTimeoutMs}`,
      `${bridge.firstUser}`,
      ownSystem === true ? "own-system" : "shared-system",
      JSON.stringify({
        ...(supervisor === undefined ? {} : { supervisor: { scripts: [], ...supervisor } }),
        workspace,
        hasFolders,
        unprivileged,
        resumable: takeover !== undefined,
      }),
    ],
  };
}

/**
 * How Node.js starts inside, in every command of the bridge: without V8's own threads, since a platform counts all threads of a
 * sandbox towards its limit of processes. The program makes the pool for files small itself.
 */
export function smallNode(node: string): [string, ...string[]] {
  return [node, "--v8-pool-size=0"];
}

/** The command of a direct pipe. It waits for the program, which its standard input begins with. */
export function directCommand(node: string, { program, settings }: Guest): [string, ...string[]] {
  return [
    ...smallNode(node),
    ...nodeArgumentsFromInput(program.content),
    program.path,
    "direct",
    ...settings,
  ];
}

/**
 * Starts the guest daemon with this command's own standard input and output, and lives until the daemon has let go of them: the
 * platform takes its end for the command's. The daemon has no parent and, where the image has `setsid`, a session of its own,
 * since a platform that ends a pipe may also end all descendants of its command. Standard error stays open as long: a container's
 * runtime ends the input of a command that closes it.
 */
const firstScript = `folder=$1; shift; mkdir -p "$folder" && umask 077 && exec 4<&0 5>&1 || exit 1
{ $(command -v setsid) "$@" ${pipeOfFirstCommand}>&1 <&4 >&5 2> "$folder/bridge.log" 4<&- 5>&- & } | cat > /dev/null 4<&- 5>&-`;

/** The command of a first pipe. It waits for the program, which its standard input begins with. */
export function firstCommand(node: string, { folder, program, settings }: Guest): [string, ...string[]] {
  const daemon = [
    ...nodeArgumentsFromInput(program.content, { isKept: true }),
    program.path,
    "first",
    ...settings,
  ];
  return ["/bin/sh", "-c", firstScript, "sh", folder, ...smallNode(node), ...daemon];
}

const daemonFile = fileURLToPath(new URL("../guest-daemon.cjs", import.meta.url));
let daemonContent: Promise<Buffer> | undefined;

/** The guest daemon as one file without dependencies. Read once. @throws SandboxFailed when it wasn't bundled. */
function guestDaemon(): Promise<Buffer> {
  daemonContent ??= readFile(daemonFile).catch((error: unknown) => {
    throw new SandboxFailed("The bridge's guest daemon isn't built: run `npm run build`", { cause: error });
  });
  return daemonContent;
}

/**
 * Node's arguments to run a CommonJS program that standard input begins with: it takes no separate upload. The path that
 * follows is the program's name, in a folder that is created. Runs on Node.js 18.
 *
 * @param isKept whether the program becomes that file before it runs, whole or not at all. Else no file of it is in the sandbox.
 */
export function nodeArgumentsFromInput(
  program: Uint8Array,
  { isKept = false } = {},
): readonly ["-e", string] {
  return ["-e", `(${readAndRun})(${program.length}, ${isKept})`];
}

/** Reads exactly the program: what follows in standard input is for it. */
const readAndRun = `(size, isKept) => {
  const fs = require("fs"), path = process.argv[1], bytes = Buffer.alloc(size);
  for (let at = 0; at < size;) {
    let length;
    try { length = fs.readSync(0, bytes, at, size - at); }
    catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
      continue;
    }
    if (length === 0) process.exit(1);
    at += length;
  }
  fs.mkdirSync(require("path").dirname(path), { recursive: true, mode: 0o755 });
  if (isKept) {
    fs.writeFileSync(path + ".part", bytes, { mode: 0o644 });
    fs.renameSync(path + ".part", path);
  }
  require("vm").runInThisContext("(require => {" + bytes + "\\n})", { filename: path })(require);
}`.replaceAll(/\s*\n\s*/g, " ");
