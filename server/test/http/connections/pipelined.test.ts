import { once } from "node:events";
import { createServer, IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { listening } from "@ambit/fakes/listening";
import { expect, it, onTestFinished } from "vitest";
import { Connections, sharesOf } from "../../../src/http/connections/connections.js";

/** A server that counts the requests which Node builds for it. */
async function serving(): Promise<{ readonly built: () => number; readonly open: () => Socket }> {
  let built = 0;
  class Counted extends IncomingMessage {
    constructor(socket: Socket) {
      super(socket);
      built += 1;
    }
  }
  const server = createServer({ IncomingMessage: Counted }, (_request, response) => {
    if (!response.req.socket.destroyed) response.end("ok");
  });
  new Connections(sharesOf(100, 1_000)).watch(server, 60_000);
  const port = await listening(server, onTestFinished);
  const open = () => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {
      // It may be ended while it still sends.
    });
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  return { built: () => built, open };
}

const one = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

it("no more requests of one segment are built than a connection may have", async () => {
  const { built, open } = await serving();
  const socket = open().resume();
  socket.write(one.repeat(1_500));
  await once(socket, "close");
  expect(built()).toBe(17);
});

it("a few requests in one segment are all answered (the control)", async () => {
  const { built, open } = await serving();
  const socket = open().setEncoding("latin1");
  let received = "";
  socket.on("data", (text: string) => {
    received += text;
  });
  socket.write(one.repeat(10));
  await expect.poll(() => received.split("HTTP/1.1 200").length - 1).toBe(10);
  socket.write(one);
  await expect.poll(() => built()).toBe(11);
  await expect.poll(() => received.split("HTTP/1.1 200").length - 1).toBe(11);
});
