// needs: jail
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { text } from "node:stream/consumers";
import type { Boundary, Sandbox } from "@ambit/core/plugin";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  closed,
  confinedBackend,
  openConfined,
  path,
  scope,
  specOf,
  temporaryFolder,
} from "../../support/specs.js";

/** Answers each connection on its port with the words, and sends back what it gets. */
const serve = `
const [host, port, words] = process.argv.slice(1);
require("node:net").createServer({ allowHalfOpen: true }, (socket) => {
  socket.on("error", () => {});
  socket.write(words + " ");
  socket.pipe(socket);
}).listen(Number(port), host, () => console.log("listening"));
`;

async function startServer(sandbox: Sandbox, port: number, words: string, host = "127.0.0.1") {
  const argv = ["node", "-e", serve, host, String(port), words] as const;
  const started = await sandbox.spawn({ argv, env: { PATH: path }, role: "agent" });
  await started.stdout.getReader().read();
  return started;
}

async function exchange(sandbox: Sandbox, port: number, sent: string): Promise<string> {
  const connection = await sandbox.connect?.(port);
  if (connection === undefined) throw new Error("this sandbox lets nothing in");
  connection.end(sent);
  return text(connection);
}

/** A service on this host's own loopback, which no connection into a sandbox may reach. */
async function hostService(): Promise<number> {
  const server = createServer((socket) => void socket.end("of the host"));
  onTestFinished(() => void server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

const nothing = /Nothing listens/;

describe("connections into a jail", () => {
  test("reach a server on a named port, each with its own answer, from ::1 too", async () => {
    const sandbox = await openConfined({ inbound: [4_000, 4_001] });
    await startServer(sandbox, 4_000, "four");
    await startServer(sandbox, 4_001, "six", "::1");
    const large = "x".repeat(1_000_000);
    expect(await exchange(sandbox, 4_000, large)).toBe(`four ${large}`);
    expect(await exchange(sandbox, 4_001, "y")).toBe("six y");
    const many = Array.from({ length: 24 }, (_one, index) => `number ${index}`);
    expect(await Promise.all(many.map((words) => exchange(sandbox, 4_000, words)))).toEqual(
      many.map((words) => `four ${words}`),
    );
  });

  test("reach no other port, although a server listens there", async () => {
    const both = await openConfined({ inbound: [4_000, 4_001] });
    await startServer(both, 4_001, "control");
    expect(await exchange(both, 4_001, "")).toBe("control ");
    const one = await openConfined({ inbound: [4_000] });
    await startServer(one, 4_001, "hidden");
    await expect(exchange(one, 4_001, "")).rejects.toThrow("Port 4001 isn't open");
    await expect(exchange(one, 4_000, "")).rejects.toThrow(nothing);
    await expect(exchange(await openConfined(), 4_001, "")).rejects.toThrow("Port 4001 isn't open");
  });

  test("never reach a service of this host, on the port that is named", async () => {
    const port = await hostService();
    const sandbox = await openConfined({ inbound: [port] });
    const asleep = await sandbox.spawn({ argv: ["sleep", "60"], env: { PATH: path }, role: "agent" });
    await expect(exchange(sandbox, port, "")).rejects.toThrow(nothing);
    await asleep.kill();
    // The control: what the same port inside answers is found.
    await startServer(sandbox, port, "inside");
    expect(await exchange(sandbox, port, "")).toBe("inside ");
  });

  test("reach only their own sandbox", async () => {
    const [one, other] = await Promise.all([
      openConfined({ inbound: [4_000] }),
      openConfined({ inbound: [4_000] }),
    ]);
    await startServer(one, 4_000, "one");
    const asleep = await other.spawn({ argv: ["sleep", "60"], env: { PATH: path } });
    expect(await exchange(one, 4_000, "")).toBe("one ");
    await expect(exchange(other, 4_000, "")).rejects.toThrow(nothing);
    await asleep.kill();
  });

  test("end with the sandbox, which leaves no socket", async () => {
    const folder = await temporaryFolder();
    const sandbox = await openConfined({ inbound: [4_000] }, { config: { dataFolder: folder } });
    const server = await startServer(sandbox, 4_000, "open");
    const connection = await sandbox.connect?.(4_000);
    expect(connection?.destroyed).toBe(false);
    await server.kill();
    await expect.poll(() => connection?.destroyed).toBe(true);
    await sandbox.close();
    const left = await readdir(folder, { recursive: true });
    expect(left.filter((name) => name.endsWith(".sock"))).toEqual([]);
  });

  test("aren't handed to a process that keeps them waiting or says something else", async () => {
    const sandbox = await openConfined({ inbound: [4_000] });
    await startServer(sandbox, 4_000, "real");
    const hostile = `
      const net = require("node:net");
      const again = () => { const s = net.connect("/run/ambit/inbound.sock");
        s.on("error", () => {}); s.on("close", again); s.write(Buffer.from([9, 9, 9])); s.resume(); };
      for (let i = 0; i < 300; i++) again();
      console.log("up"); setInterval(() => {}, 1000);`;
    const argv = ["node", "-e", hostile] as const;
    const started = await sandbox.spawn({ argv, env: { PATH: path } });
    await started.stdout.getReader().read();
    // Another jail's way in is another socket: the agent's isn't affected.
    expect(await exchange(sandbox, 4_000, "yes")).toBe("real yes");
    await started.kill();
  });
});

test("a boundary whose ports would lead to this host is refused with its fix", async () => {
  const backend = await confinedBackend();
  const allowlist = {
    mode: "allowlist",
    rules: [{ kind: "range", cidr: "127.0.0.1/32", family: 4, port: 5_432 }],
  } as const;
  const network = { mode: "on", rules: [] } as const;
  const gaps = (boundary: Partial<Boundary>) => backend.gaps({ ...closed, ...boundary });
  const gap = (fix: string) => [expect.objectContaining({ capability: "inbound.ports", fix })];
  expect(gaps({ inbound: [4_000] })).toEqual([]);
  expect(gaps({ inbound: [4_000], network: allowlist })).toEqual([]);
  expect(gaps({ network })).toEqual([]);
  expect(gaps({ inbound: [5_432], network: allowlist })).toEqual(gap("use another port inside"));
  expect(gaps({ inbound: [3_128] })).toEqual(gap("use another port"));
  expect(gaps({ inbound: [4_000], network })).toEqual(
    gap('set sandboxPermission.network to "off" or to an allowlist'),
  );
  const opening = backend.open(specOf({ boundary: { ...closed, network, inbound: [4_000] } }), scope);
  await expect(opening).rejects.toThrow(/inbound.ports: the network is the host's own/);
});
