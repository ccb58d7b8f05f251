import type { Server, Socket } from "node:net";

/** Open connections of a decoy. */
export const probeConnections = 64;

/**
 * Bounds the open connections of a decoy, which every process of this host may reach: one more, and the oldest ends. A flood
 * displaces itself: it neither takes the process's descriptors nor hides the decoy from a probe.
 */
export function boundConnections(server: Server, maxConnections = probeConnections): void {
  /** In the order of their start. */
  const open = new Set<Socket>();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    const [oldest] = open;
    if (open.size <= maxConnections || oldest === undefined) return;
    // Its close follows a turn later.
    open.delete(oldest);
    oldest.destroy();
  });
}
