/** A thread: the program in the sandbox, which requests from a TLS server directly or through the session's proxy. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { Agent } from "node:https";
import { connect as connectSocket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { parentPort, workerData } from "node:worker_threads";
import type { ClientSetting, Fetched, Task } from "./brokered.js";

const { host, port, ways }: ClientSetting = workerData;
const kept = new Map<string, Agent>();

parentPort?.on("message", async ({ way, path, isKept }: Task) => {
  try {
    parentPort?.postMessage(isKept ? await askKept(way, path) : await askAnew(way, path));
  } catch (error) {
    parentPort?.postMessage(error);
  }
});

async function connection(way: Task["way"]): Promise<TLSSocket> {
  const { authority, proxy } = ways[way];
  if (proxy === undefined) return connectTls({ host: "127.0.0.1", port, servername: host, ca: authority });
  const socket = connectSocket(proxy);
  socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`);
  await once(socket, "data");
  return connectTls({ socket, servername: host, ca: authority });
}

async function askAnew(way: Task["way"], path: string): Promise<Fetched> {
  const begun = performance.now();
  const socket = await connection(way);
  const fetched = await finish(
    httpRequest({ ...requestFor(way, path), createConnection: () => socket }),
    begun,
  );
  socket.destroy();
  return fetched;
}

async function askKept(way: Task["way"], path: string): Promise<Fetched> {
  let agent = kept.get(way);
  if (agent === undefined) {
    const socket = await connection(way);
    agent = new Agent({ keepAlive: true, maxSockets: 1 });
    agent.createConnection = () => socket;
    kept.set(way, agent);
  }
  return finish(httpRequest({ ...requestFor(way, path), agent, protocol: "https:" }), performance.now());
}

function requestFor(way: Task["way"], path: string) {
  return { path, headers: { host: `${host}:${port}`, authorization: `Bearer ${ways[way].credential}` } };
}

async function finish(outgoing: ReturnType<typeof httpRequest>, begun: number): Promise<Fetched> {
  outgoing.end();
  const [incoming]: IncomingMessage[] = await once(outgoing, "response");
  if (incoming?.statusCode !== 200) throw new Error(`the server answered ${incoming?.statusCode}`);
  let firstByteMs: number | undefined;
  for await (const _chunk of incoming) firstByteMs ??= performance.now() - begun;
  return { firstByteMs: firstByteMs ?? Number.NaN, totalMs: performance.now() - begun };
}
