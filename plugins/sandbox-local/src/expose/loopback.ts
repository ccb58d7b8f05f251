import { createServer } from "node:http";
import { listeningPort } from "@ambit/backend-kit";
import { listenerOf } from "@ambit/backend-kit/http";
import { type Exposure, type FetchHandler, newToken, requireBearer } from "@ambit/core/plugin";
import { defaultProxyLimits, serverBudget } from "@ambit/egress/proxy";
import { closed, listening } from "./channel.js";

/** Serves a handler on the host's loopback, for processes that share the host's network. */
export async function exposeOnLoopback(handler: FetchHandler): Promise<Exposure> {
  const token = newToken();
  const server = createServer(
    {
      headersTimeout: defaultProxyLimits.handshakeMs,
      requestTimeout: defaultProxyLimits.bodyMs,
      connectionsCheckingInterval: 1_000,
    },
    listenerOf(requireBearer(token, handler)),
  );
  // Every process of the host can connect, so the number of open connections is limited before anything is read.
  server.maxConnections = defaultProxyLimits.connections;
  const share = serverBudget().join();
  server.on("connection", (connection) => {
    if (!share.take()) return void connection.destroy();
    connection.once("close", () => share.release());
  });
  await listening(server, { host: "127.0.0.1", port: 0 });
  const port = listeningPort(server);
  return {
    url: `http://127.0.0.1:${port}`,
    token,
    close: async () => {
      share.leave();
      const done = closed(server);
      server.closeAllConnections();
      await done;
    },
  };
}
