import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { Agent } from "node:https";
import { connect as connectSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { makeAuthority, openCredentialBroker } from "@ambit/egress/credentials";
import { openEgressProxy } from "@ambit/egress/proxy";

const host = "bench.test";
const value = "a-credential-of-the-bench-0123456789";

/** One server, reached by TLS directly and through a session's proxy that puts a credential on. */
export interface Brokered {
  /** A new connection, and one request on it: ms from the first packet to the body's first byte. */
  direct(bytes: number): Promise<Fetched>;
  through(bytes: number): Promise<Fetched>;
  /** The same on a connection that is kept. */
  directKept(): Promise<number>;
  throughKept(): Promise<number>;
  close(): Promise<void>;
}

export interface Fetched {
  readonly firstByteMs: number;
  readonly totalMs: number;
}

/** @throws when the server's thread doesn't start. */
export async function openBrokered(): Promise<Brokered> {
  const folder = mkdtempSync(join(tmpdir(), "ambit-bench-broker-"));
  const authority = await makeAuthority();
  const { key, certificate } = await authority.certificateFor(host);
  // A thread of its own: a server is no part of what is measured.
  const server = new Worker(fileURLToPath(new URL("./tls-server.js", import.meta.url)), {
    workerData: { key, certificate, authorization: `Bearer ${value}` },
  });
  const [port]: number[] = await once(server, "message");
  if (port === undefined) throw new Error("the server has no port");
  const hosts = [`${host}:${port}`];
  const broker = await openCredentialBroker([{ name: "KEY", value, hosts, as: "bearer" }], {
    trusted: [authority.certificate],
  });
  const path = join(folder, "proxy.sock");
  const proxy = await openEgressProxy({
    listen: { path },
    policy: {
      mode: "allowlist",
      rules: [
        { kind: "host", name: host, subdomains: false },
        { kind: "range", cidr: "127.0.0.1/32", family: 4 },
      ],
    },
    onDecision: () => {},
    lookup: async () => ["127.0.0.1"],
    credentials: broker,
  });
  const straight = () => connectTls({ host: "127.0.0.1", port, servername: host, ca: authority.certificate });
  const tunnelled = async () => {
    const socket = connectSocket(path);
    socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`);
    await once(socket, "data");
    return connectTls({ socket, servername: host, ca: broker.authority });
  };
  const fetch = async (open: () => TLSSocket | Promise<TLSSocket>, sent: string, bytes: number) => {
    const begun = performance.now();
    const socket = await open();
    const fetched = await ask(() => socket, port, sent, bytes, begun);
    socket.destroy();
    return fetched;
  };
  const sent = broker.placeholders.KEY ?? "";
  const kept = { direct: keptAgent(straight()), through: keptAgent(await tunnelled()) };
  return {
    direct: (bytes) => fetch(straight, value, bytes),
    through: (bytes) => fetch(tunnelled, sent, bytes),
    directKept: async () => (await askKept(kept.direct, port, value)).firstByteMs,
    throughKept: async () => (await askKept(kept.through, port, sent)).firstByteMs,
    close: async () => {
      kept.direct.destroy();
      kept.through.destroy();
      await proxy.close();
      await server.terminate();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Gives one connection, again and again. */
function keptAgent(socket: TLSSocket): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => socket;
  return agent;
}

function askKept(agent: Agent, port: number, sent: string): Promise<Fetched> {
  const outgoing = { agent, protocol: "https:" };
  return finish(httpRequest({ ...requestFor(port, sent, 100), ...outgoing }), performance.now());
}

function ask(
  createConnection: () => TLSSocket,
  port: number,
  sent: string,
  bytes: number,
  begun: number,
): Promise<Fetched> {
  return finish(httpRequest({ ...requestFor(port, sent, bytes), createConnection }), begun);
}

function requestFor(port: number, sent: string, bytes: number) {
  const headers = { host: `${host}:${port}`, authorization: `Bearer ${sent}` };
  return { path: `/${bytes}`, headers };
}

async function finish(outgoing: ReturnType<typeof httpRequest>, begun: number): Promise<Fetched> {
  outgoing.end();
  const [incoming]: IncomingMessage[] = await once(outgoing, "response");
  if (incoming?.statusCode !== 200) throw new Error(`the server answered ${incoming?.statusCode}`);
  let firstByteMs: number | undefined;
  for await (const _chunk of incoming) firstByteMs ??= performance.now() - begun;
  return { firstByteMs: firstByteMs ?? Number.NaN, totalMs: performance.now() - begun };
}
