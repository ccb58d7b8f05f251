import { setTimeout as after } from "node:timers/promises";
import type {
  BinaryPlatform,
  BridgeLink,
  DirectPlatform,
  RemotePlatform,
  RemoteSandboxOptions,
} from "../remote-sandbox.js";
import { ByteFormat } from "../transport/byte-format.js";
import { Channels } from "../transport/channels.js";
import { DirectTransport } from "../transport/direct-transport.js";
import type { Transport } from "../transport/frame.js";
import { LineFormat } from "../transport/line-format.js";
import { ask, done } from "./ask.js";
import { BridgeConnection, type BridgeConnectionOptions, ByteWriter, LineWriter } from "./connection.js";
import { Entrances, Exposures } from "./connections.js";
import { DirectConnection } from "./direct-connection.js";
import { directCommand, type Guest, smallNode } from "./guest.js";

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
  const left = new AbortController();
  const tooLong = after(shutdownMs, undefined, { signal: left.signal }).catch(() => undefined);
  if (connection.isOpen)
    await Promise.race([ask(channels, "shutdown", {}, done).catch(() => undefined), tooLong]);
  left.abort();
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
