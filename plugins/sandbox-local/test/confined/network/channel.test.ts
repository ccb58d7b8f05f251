// needs: jail
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { defaultProxyLimits } from "@ambit/egress/proxy";
import { expect, onTestFinished, test } from "vitest";
import { openConfined, path, run, temporaryFolder } from "../../support/specs.js";

const attempts = 3 * defaultProxyLimits.connections;

/**
 * Opens connections with half a request on each, and counts those that stay open once there are no more than `argv[2]` says: a
 * busy proxy closes the others late.
 */
const exhaust = `
const net = require("node:net");
const open = new Set();
const begin = () => new Promise((done) => {
  const socket = net.connect(process.argv[1]);
  open.add(socket);
  socket.once("connect", () => { socket.write("POST /mcp HTTP/1.1\\r\\nHost: x\\r\\n"); done(); });
  socket.on("error", () => {});
  socket.once("close", () => { open.delete(socket); done(); });
  socket.resume();
});
(async () => {
  for (let index = 0; index < ${attempts}; index++) await begin();
  const count = (before) => setTimeout(() =>
    open.size === before && before <= Number(process.argv[2] ?? Infinity) ? console.log(before) : count(open.size), 500);
  count(open.size);
  process.stdin.resume();
})();
`;

const descriptors = () => readdirSync("/proc/self/fd").length;

test("half-open requests use only the descriptors that their session may have", async () => {
  const [hostile, neighbour] = await Promise.all([openConfined(), openConfined()]);
  const exposure = await neighbour.expose(() => new Response("served"));
  const before = descriptors();
  const started = await hostile.spawn({
    argv: ["node", "-e", exhaust, "/run/ambit/channel.sock", String(defaultProxyLimits.connections)],
    env: { PATH: path },
  });
  const { value } = await started.stdout.getReader().read();
  expect(Number(new TextDecoder().decode(value))).toBe(defaultProxyLimits.connections);
  // They include pipes of processes started meanwhile.
  expect(descriptors() - before).toBeLessThan(defaultProxyLimits.connections + 32);
  const argv = ["curl", "-sS", "-H", `authorization: Bearer ${exposure.token}`, exposure.url] as const;
  expect((await run(neighbour, argv)).stdout).toBe("served");
  await started.kill();
  await expect.poll(descriptors, { timeout: 5_000 }).toBeLessThan(before + 32);
});

test("the same attack takes every descriptor of a server without a limit", async () => {
  const socketPath = join(await temporaryFolder(), "open.sock");
  const taken = new Set<Socket>();
  const server = createServer((socket) => {
    taken.add(socket);
    socket.on("error", () => undefined);
  });
  server.listen(socketPath);
  const attacker = spawn(process.execPath, ["-e", exhaust, socketPath], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => {
    attacker.kill("SIGKILL");
    for (const socket of taken) socket.destroy();
    server.close();
  });
  const [said] = await once(attacker.stdout, "data");
  expect(Number(said)).toBe(attempts);
  expect(taken.size).toBe(attempts);
});
