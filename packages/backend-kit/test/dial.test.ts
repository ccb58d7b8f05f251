import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { Readable, Writable } from "node:stream";
import type { Process, Sandbox } from "@ambit/core/plugin";
import { expect, it, onTestFinished } from "vitest";
import { dialUntilClosed, reachedTargets } from "../src/index.js";

/** Plain processes of this host. */
const sandbox: Pick<Sandbox, "spawn"> = {
  async spawn({ argv: [program, ...rest], env }): Promise<Process> {
    const child = spawn(program, rest, { env, stdio: "pipe" });
    const exit = once(child, "close").then(([code, signal]) => ({ code, signal }));
    return {
      stdin: Writable.toWeb(child.stdin),
      stdout: Readable.toWeb(child.stdout),
      stderr: Readable.toWeb(child.stderr),
      exit,
      evidence: {},
      kill: async () => void child.kill("SIGKILL"),
    };
  },
};

async function listener(): Promise<{ server: Server; target: { host: string; port: number } }> {
  const server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { server, target: { host: "127.0.0.1", port: address.port } };
}

const options = { node: process.execPath, signal: new AbortController().signal };

it("finds what an open sandbox reaches, and nothing that refuses", async () => {
  const [open, closed] = [await listener(), await listener()];
  closed.server.close();
  const targets = [open.target, closed.target];
  expect(await reachedTargets(sandbox, { ...options, targets })).toEqual([open.target]);
});

it("finds what answers a datagram, by its address, and nothing that doesn't answer", async () => {
  const [answering, silent] = [createSocket("udp4"), createSocket("udp4")];
  answering.on("message", (message, { port, address }) => answering.send(message, port, address));
  const arrived = once(silent, "message");
  const portOf = async (socket: typeof silent) => {
    onTestFinished(() => void socket.close());
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    return socket.address().port;
  };
  const [port, other] = [await portOf(answering), await portOf(silent)];
  const udp = { host: "127.0.0.1", protocol: "udp" } as const;
  const targets = [
    { ...udp, port },
    { ...udp, port: other },
    { ...udp, host: "localhost", port },
    // Nothing listens there over TCP.
    { host: "127.0.0.1", port },
    { ...udp, host: "nowhere.invalid", port },
  ];
  const open = await reachedTargets(sandbox, { ...options, targets });
  expect(open.filter(({ host }) => host === "127.0.0.1")).toEqual([
    { ...udp, port },
    { ...udp, port },
  ]);
  expect(open.every((one) => one.port === port && one.protocol === "udp")).toBe(true);
  const [query] = await arrived;
  // A question in the form of the DNS, of the class CHAOS.
  expect(query.readUInt16BE(4)).toBe(1);
  expect(query.subarray(12).toString("latin1")).toBe("\x07version\x04bind\0\0\x10\0\x03");
});

it("waits until nothing is open any more", async () => {
  const [one, other] = [await listener(), await listener()];
  // As a policy that comes late: after the first connection.
  one.server.once("connection", () => setTimeout(() => one.server.close(), 300));
  other.server.once("connection", () => setTimeout(() => other.server.close(), 100));
  const dialled = await dialUntilClosed(sandbox, { ...options, targets: [one.target, other.target] }, 60_000);
  expect(dialled.open).toEqual([]);
  expect(dialled.openMs).toBeGreaterThan(0);
});

it("reports what is still open when it has waited long enough", async () => {
  const { target } = await listener();
  const dialled = await dialUntilClosed(sandbox, { ...options, targets: [target] }, 300);
  expect(dialled.open).toEqual([target]);
});

it("fails where its program doesn't run", async () => {
  await expect(dialUntilClosed(sandbox, { ...options, node: "/bin/false", targets: [] }, 0)).rejects.toThrow(
    "couldn't be tried",
  );
});
