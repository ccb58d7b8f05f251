import { join } from "node:path/posix";
import { setTimeout as after } from "node:timers/promises";
import { Channels } from "../transport/channels.js";
import { ReliableTransport } from "../transport/reliable-transport.js";
import { done } from "./answers.js";
import { ask } from "./ask.js";
import { Connection } from "./connection.js";
import { Exposures } from "./exposures.js";
import type { RemoteSandboxOptions } from "./open.js";

/** Milliseconds that the guest daemon may take to end its processes, before the platform ends the sandbox. */
const shutdownMs = 2_000;

/** The runner's side. */
export interface Bridge {
  readonly connection: Connection;
  readonly channels: Channels;
  readonly exposures: Exposures;
}

/** @param program where the guest daemon was uploaded to. */
export function makeBridge(
  { platform, spec, bridge, ownSystem, supervisor, workspace }: RemoteSandboxOptions,
  folder: string,
  program: string,
): Bridge {
  const transport: ReliableTransport = new ReliableTransport("runner", (frame) => channels.deliver(frame));
  const exposures: Exposures = new Exposures(() => channels);
  const channels: Channels = new Channels("runner", transport, (kind, channel) =>
    kind === "connection" ? exposures.connected(channel) : undefined,
  );
  const connection = new Connection({
    platform,
    argv: [
      bridge.node,
      join(folder, program),
      "attach",
      folder,
      `${bridge.orphanTimeoutMs}`,
      `${bridge.firstUser}`,
      ownSystem === true ? "own-system" : "shared-system",
      JSON.stringify({ supervisor, workspace }),
    ],
    transport,
    bridge,
    log: spec.log,
    onLost: (failure) => {
      exposures.close();
      channels.closeAll();
      spec.onFailure?.(failure);
    },
  });
  return { connection, channels, exposures };
}

/** Ends what runs inside, as far as it can still be told to, and every stream. */
export async function closeBridge({ channels, connection, exposures }: Bridge): Promise<void> {
  exposures.close();
  const left = new AbortController();
  const tooLong = after(shutdownMs, undefined, { signal: left.signal }).catch(() => undefined);
  if (connection.isOpen)
    await Promise.race([ask(channels, "shutdown", {}, done).catch(() => undefined), tooLong]);
  left.abort();
  channels.closeAll();
  await connection.close();
}
