import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server as NetServer,
  type Socket,
} from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type NetworkBoundary, parseNetworkRule } from "@ambit/core/plugin";
import { describe, it } from "vitest";
import {
  type EgressDecision,
  type EgressProxy,
  type EgressProxyOptions,
  openEgressProxy,
} from "../../src/proxy/index.js";

/** The internet of these tests: servers on 127.0.0.2, which the policies list as a range; 127.0.0.1 never is listed. */
export const INTERNET = "127.0.0.2";
export const INTERNET_RANGE = `${INTERNET}/32`;

/** For a test of what only a proxy in this process shows: its limits, and its open sockets. */
export const itHere: typeof it = it;
export const describeHere: typeof describe = describe;

/** A policy that allows these hosts, and the address that they live at. */
export function allow(
  hosts: readonly string[],
  ranges: readonly string[] = [INTERNET_RANGE],
): NetworkBoundary {
  const rules = [...hosts, ...ranges].map((entry) => {
    const parsed = parseNetworkRule(entry);
    if (!("rule" in parsed)) throw new Error(`a rule of the test is wrong: ${entry} ${parsed.problem}`);
    return parsed.rule;
  });
  return { mode: "allowlist", rules };
}

/** A policy that allows nothing. */
export const denyAll: NetworkBoundary = { mode: "off", rules: [] };

export interface ProxySession {
  readonly path: string;
  readonly decisions: EgressDecision[];
  readonly faults: unknown[];
  readonly lookups: string[];
  readonly proxy: EgressProxy;
  close(): Promise<void>;
}

/** A proxy on a unix socket of its own, with every name at the internet's address unless `names` says otherwise. */
export async function openSession(
  policy: NetworkBoundary,
  options: Partial<EgressProxyOptions> & { names?: Record<string, readonly string[]> } = {},
): Promise<ProxySession> {
  const folder = mkdtempSync(join(tmpdir(), "ambit-egress-"));
  const path = join(folder, "p.sock");
  const decisions: EgressDecision[] = [];
  const faults: unknown[] = [];
  const lookups: string[] = [];
  const { names = {}, ...rest } = options;
  const proxy = await openEgressProxy({
    listen: { path },
    policy,
    onDecision: (decision) => decisions.push(decision),
    onFault: (fault) => faults.push(fault),
    hostAddresses: () => [],
    lookup: async (name) => {
      lookups.push(name);
      return names[name] ?? [INTERNET];
    },
    ...rest,
  });
  const close = async () => {
    await proxy.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { path, decisions, faults, lookups, proxy, close };
}

export interface Origin {
  readonly port: number;
  readonly requests: { method: string; url: string; headers: IncomingMessage["rawHeaders"]; body: string }[];
  close(): Promise<void>;
}

/** A server that records what arrives and answers `hello` (or what `listener` does). */
export async function openOrigin(
  options: {
    address?: string;
    port?: number;
    tls?: { key: string; cert: string };
    listener?: RequestListener;
  } = {},
): Promise<Origin> {
  const requests: Origin["requests"] = [];
  const listener: RequestListener = (request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on("end", () => {
      requests.push({
        method: request.method ?? "",
        url: request.url ?? "",
        headers: request.rawHeaders,
        body,
      });
      if (options.listener) options.listener(request, response);
      else response.end("hello");
    });
  };
  const server: Server = options.tls ? createTlsServer(options.tls, listener) : createServer(listener);
  const { port } = await listen(server, options.address ?? INTERNET, options.port ?? 0);
  return {
    port,
    requests,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

export async function openTcp(
  onConnection: (socket: Socket) => void,
  address = INTERNET,
): Promise<{ port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    onConnection(socket);
  });
  const { port } = await listen(server, address, 0);
  return {
    port,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function listen(server: NetServer, address: string, port: number): Promise<AddressInfo> {
  server.listen(port, address);
  await once(server, "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("the server has no port");
  return bound;
}

/** Sends bytes to the proxy's socket and gathers all that comes back until the connection ends. */
export async function exchange(path: string, ...chunks: (string | Buffer)[]): Promise<string> {
  const socket = connect(path);
  await once(socket, "connect");
  for (const chunk of chunks) {
    socket.write(chunk);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return (await gather(socket)).toString("latin1");
}

export async function gather(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => {});
  socket.resume();
  if (!socket.destroyed) await once(socket, "close");
  return Buffer.concat(chunks);
}

/** Opens a CONNECT tunnel. `socket` is usable when the status is 200. */
export async function connectThrough(
  path: string,
  authority: string,
): Promise<{ head: string; status: number; socket: Socket }> {
  const socket = connect(path);
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  let head = "";
  while (!head.includes("\r\n\r\n")) {
    const [chunk] = (await once(socket, "data")) as [Buffer];
    head += chunk.toString("latin1");
  }
  socket.pause();
  const status = Number(head.split(" ")[1]);
  if (status === 200) socket.unshift(Buffer.from(head.slice(head.indexOf("\r\n\r\n") + 4), "latin1"));
  return { head, status, socket };
}

/** Asks for a SOCKS5 connection and returns the reply's code. */
export async function socksThrough(
  path: string,
  host: string | Buffer,
  port: number,
  command = 1,
): Promise<{ reply: number; socket: Socket }> {
  const socket = connect(path);
  socket.on("error", () => {});
  await once(socket, "connect");
  const received: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => received.push(chunk));
  const until = async (length: number) => {
    while (Buffer.concat(received).length < length) await once(socket, "data");
    return Buffer.concat(received);
  };
  socket.write(Buffer.from([5, 1, 0]));
  await until(2);
  const portBytes = Buffer.from([port >> 8, port & 255]);
  const name = Buffer.from(host);
  const address =
    typeof host === "string"
      ? Buffer.concat([Buffer.from([3, name.length]), name])
      : Buffer.concat([Buffer.from([host.length === 4 ? 1 : 4]), host]);
  socket.write(Buffer.concat([Buffer.from([5, command, 0]), address, portBytes]));
  const reply = (await until(12)).readUInt8(3);
  socket.removeAllListeners("data");
  socket.pause();
  socket.unshift(Buffer.concat(received).subarray(12));
  return { reply, socket };
}
