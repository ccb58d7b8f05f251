import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** Gives this machine an address for the test. Needs root. */
export function takeAddress(address: string): void {
  const change = (verb: "add" | "del") =>
    spawnSync("ip", ["address", verb, `${address}/32`, "dev", "lo"], { encoding: "utf8" });
  const { status, stderr } = change("add");
  // A test that was killed may have left it.
  const isThere = status !== 0 && /already assigned|File exists/.test(stderr);
  if (status !== 0 && !isThere) throw new Error(`${address} can't be taken: ${stderr}`);
  onTestFinished(() => void change("del"));
}

/** Forwards connections to an address to a server on the loopback, at the same port. */
export async function answerAt(address: string, port: number): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const target = connect(port, "127.0.0.1");
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.once("close", () => sockets.delete(one));
    }
  });
  server.listen(port, address);
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
}
