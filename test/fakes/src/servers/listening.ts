import { once } from "node:events";
import type { Server } from "node:net";

/**
 * Lets a server, HTTP or TCP, listen on this host's loopback until the test ends.
 *
 * @param onEnd vitest's `onTestFinished`.
 * @returns its port.
 */
export async function listening(
  server: Server & { closeAllConnections?(): void },
  onEnd: (close: () => void) => void,
): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onEnd(() => {
    server.closeAllConnections?.();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the server has no port");
  return address.port;
}
