import { createServer } from "node:net";

/** Accepts connections on the ports of the daemon's other services and sends a word. The services don't exist. */
export function listenOnOtherPorts(ports: readonly number[], ready: () => void): void {
  let waiting = ports.length;
  for (const port of ports) {
    const server = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      socket.end("loopback\n");
    });
    server.listen(port, "::", () => {
      waiting -= 1;
      if (waiting === 0) ready();
    });
  }
}
