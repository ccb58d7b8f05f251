import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type Server } from "node:net";
import { pacedListener } from "@ambit/egress/paced-connection";
import { listening } from "@ambit/fakes/listening";
import { describe, expect, it, onTestFinished } from "vitest";
import { Connections, sharesOf } from "../../../src/http/connections/connections.js";
import { watchPieces } from "../../support/pieces-in-turn.js";
import { saying } from "../../support/scripted-agent.js";
import { serveScript } from "../../support/server.js";

const count = 20_000;
const callers = 8;
const request = `POST /run HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(count)}0\r\n\r\n`;

/** The most pieces of bodies in one turn of the event loop, while callers send chunks of a single byte. */
async function maxInTurnOf(port: number): Promise<number> {
  const pieces = watchPieces();
  await Promise.all(
    Array.from({ length: callers }, async () => {
      const socket = connect(port, "127.0.0.1").resume();
      onTestFinished(() => void socket.destroy());
      socket.write(request);
      await once(socket, "close");
    }),
  );
  // Each body has an end, too.
  expect(pieces.total()).toBe(callers * (count + 1));
  return pieces.maxInTurn();
}

describe("bodies in chunks of a single byte are read in turns of the event loop that all callers share", () => {
  const listenersOf = {
    "by a plain server not (the control)": (server: ReturnType<typeof createServer>): Server => server,
    "by one with a paced listener": pacedListener,
  };

  it.each(Object.entries(listenersOf))("%s", async (title, listenerOf) => {
    const server = createServer((incoming, response) => {
      incoming.resume().once("end", () => response.end());
    });
    new Connections(sharesOf(100, 1_000)).watch(server, 60_000);
    const most = await maxInTurnOf(await listening(listenerOf(server), onTestFinished));
    if (title.includes("control")) expect(most).toBeGreaterThan(5_000);
    else expect(most).toBeLessThan(1_000);
  });

  it("by the server itself", async () => {
    const { url } = await serveScript(saying("x"));
    expect(await maxInTurnOf(Number(new URL(url).port))).toBeLessThan(1_000);
  });
});
