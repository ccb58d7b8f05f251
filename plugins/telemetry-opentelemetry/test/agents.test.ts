import { request } from "node:http";
import { createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { configSchema } from "../src/config.js";
import { agentFor } from "../src/export/agents.js";

/** A collector that answers in single bytes for as long as somebody reads. */
async function endless(): Promise<{ readonly url: string; readonly closed: Promise<void> }> {
  const closed = Promise.withResolvers<void>();
  const sockets = new Set<Socket>();
  const chunks = "1\r\nx\r\n".repeat(1_000);
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => closed.resolve());
    const more = () => {
      while (socket.writable && socket.write(chunks));
    };
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      more();
    });
    socket.on("drain", more);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`,
    closed: closed.promise,
  };
}

/** Bytes that are read of an answer, 256 KiB at most. */
function read(url: string, isCallers: boolean): Promise<number> {
  const agent = agentFor({ url, headers: {}, isCallers }, configSchema.parse({ privateHosts: "allow" }));
  return new Promise((resolve) => {
    const sent = request(url, { method: "POST", agent: agent("http:") }, (response) => {
      let bytes = 0;
      response.on("data", (piece: Buffer) => {
        bytes += piece.length;
        if (bytes > 262_144) sent.destroy();
      });
      response.on("error", () => {});
      response.once("close", () => resolve(bytes));
    });
    sent.on("error", () => {});
    sent.end();
  });
}

it("what a caller's collector answers is bounded, and its connection ended", async () => {
  const { url, closed } = await endless();
  expect(await read(url, true)).toBeLessThan(65_536);
  await closed;
});

it("the operator's isn't", async () => {
  const { url } = await endless();
  expect(await read(url, false)).toBeGreaterThan(262_143);
});
