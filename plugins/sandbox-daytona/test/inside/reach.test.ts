import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { type Attempts, lookProgram, readLook } from "@ambit/attacks/inside";
import { makeAuthority } from "@ambit/egress/credentials";
import { describe, expect, it, onTestFinished } from "vitest";

async function look(attempts: Attempts) {
  const [program, ...rest] = await lookProgram(process.execPath, attempts);
  return readLook((await promisify(execFile)(program, rest)).stdout);
}

/** Its clients go when they know enough. */
const serverOf = (answer: (socket: Socket) => void) =>
  createServer((socket) => {
    socket.on("error", () => undefined);
    answer(socket);
  });

describe("an attempt of the canary", () => {
  it("counts at a port of TLS only with a handshake: a proxy accepts every connection", async (context) => {
    if (process.getuid?.() !== 0) context.skip("host: only root may listen at port 443");
    const secureContext = await (await makeAuthority()).contextFor("localhost");
    const servers = {
      handshake: serverOf((socket) =>
        new TLSSocket(socket, { isServer: true, secureContext }).on("error", () => undefined).resume(),
      ),
      otherProtocol: serverOf((socket) => socket.end("hello")),
      closed: serverOf((socket) => socket.destroy()),
    };
    // Addresses of this host's loopback that nothing else uses.
    const hosts = { handshake: "127.77.44.1", otherProtocol: "127.77.44.2", closed: "127.77.44.3" };
    const listen = async (server: Server, host: string, port: number) => {
      await once(server.listen(port, host), "listening");
      onTestFinished(() => void server.close());
    };
    await listen(servers.handshake, hosts.handshake, 443);
    await listen(servers.otherProtocol, hosts.otherProtocol, 443);
    await listen(servers.closed, hosts.closed, 443);
    const asked = Object.fromEntries(
      Object.entries(hosts).map(([id, host]) => [
        id,
        { try: "answer", host, port: 443, limitMs: 5_000 } as const,
      ]),
    );
    expect(await look(asked)).toEqual({
      handshake: "TLS handshake",
      otherProtocol: null,
      closed: null,
    });
    // The control: elsewhere a connection is enough.
    await listen(
      serverOf((socket) => socket.end("hello")),
      hosts.otherProtocol,
      4_443,
    );
    const elsewhere = { try: "answer", host: hosts.otherProtocol, port: 4_443, limitMs: 5_000 } as const;
    expect(await look({ elsewhere })).toEqual({ elsewhere: "connected" });
  });
});
