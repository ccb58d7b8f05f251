import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type Server } from "node:net";
import { listenerFor } from "@ambit/egress/fed-connection";
import { listening } from "@ambit/fakes/listening";
import { expect, it, onTestFinished } from "vitest";
import { Connections } from "../../../src/http/connections/connections.js";
import { sharesOf } from "../../../src/http/connections/shares.js";

const count = 20_000;
const callers = 8;
const request = `POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(count)}0\r\n\r\n`;

/** The most chunks that are handled in one turn of the event loop while callers send them one byte at a time. */
async function maxInTurn(listenerOf: (server: ReturnType<typeof createServer>) => Server): Promise<number> {
  let [inTurn, most, bytes] = [0, 0, 0];
  const server = createServer((incoming, response) => {
    incoming.on("data", (piece: Buffer) => {
      bytes += piece.length;
      if (inTurn === 0)
        setImmediate(() => {
          most = Math.max(inTurn, most);
          inTurn = 0;
        });
      inTurn += 1;
    });
    incoming.once("end", () => response.end());
  });
  new Connections(sharesOf(100, 1_000)).watch(server, 60_000);
  const port = await listening(listenerOf(server), onTestFinished);
  await Promise.all(
    Array.from({ length: callers }, async () => {
      const socket = connect(port, "127.0.0.1").resume();
      onTestFinished(() => void socket.destroy());
      socket.write(request);
      await once(socket, "close");
    }),
  );
  expect(bytes).toBe(callers * count);
  return most;
}

it("bodies in chunks of a single byte are read in turns of the event loop that all callers share", async () => {
  expect(await maxInTurn((server) => server)).toBeGreaterThan(5_000);
  expect(await maxInTurn(listenerFor)).toBeLessThan(1_000);
});
