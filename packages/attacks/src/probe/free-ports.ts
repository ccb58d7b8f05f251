import { once } from "node:events";
import { createServer } from "node:net";
import { listeningPort } from "./listening-port.js";

/** Different ports of this host's loopback that nothing listens on just now. Another program may take one at any time. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  try {
    for (const server of servers) await once(server.listen(0, "127.0.0.1"), "listening");
    return servers.map(listeningPort);
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

/** One of them. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
