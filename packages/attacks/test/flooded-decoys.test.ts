import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { openStreamDecoy, probeConnections } from "../src/decoys/network-decoys.js";
import { makeDecoys } from "../src/standard-probe/decoys.js";

/** Connections that a neighbour opens and keeps. Resolves when each was accepted or refused. */
async function flood(port: number): Promise<readonly Socket[]> {
  const sockets = Array.from({ length: 300 }, () => {
    const socket = connect(port, "127.0.0.1");
    // The decoy ends what is too much.
    socket.on("error", () => undefined);
    socket.resume();
    return socket;
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => Promise.race([once(socket, "connect"), once(socket, "close")])));
  return sockets;
}

const alive = (sockets: readonly Socket[]) => sockets.filter(({ closed }) => !closed).length;

it("a probe's decoy keeps few connections, and answers the newest", async () => {
  const decoys = await makeDecoys("127.0.0.1");
  onTestFinished(() => decoys.close());
  const sockets = await flood(decoys.listedPort);
  await expect.poll(() => alive(sockets)).toBeLessThanOrEqual(probeConnections);
  expect(await (await fetch(`http://127.0.0.1:${decoys.listedPort}`)).text()).toBe(decoys.secret);
});

it("a stream decoy does the same", async () => {
  const decoy = await openStreamDecoy({ host: "127.0.0.1" }, "answer");
  if (decoy === undefined) throw new Error("loopback isn't there");
  onTestFinished(() => decoy.close());
  const sockets = await flood(decoy.endpoint.port);
  await expect.poll(() => alive(sockets)).toBeLessThanOrEqual(probeConnections);
  expect(await (await fetch(`http://127.0.0.1:${decoy.endpoint.port}`)).text()).toBe("answer");
});
