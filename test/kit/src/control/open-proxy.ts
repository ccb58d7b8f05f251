import { createServer, request } from "node:http";
import { connect, type Socket } from "node:net";
import { type DecoyPlace, keysZone, listedZone } from "@ambit/attacks";

export interface OpenProxy {
  /** The variables by which programs find it. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** A proxy without a policy, for unguarded runs. It forwards to loopback, and to where the decoys listen, only. */
export async function startOpenProxy(place: DecoyPlace): Promise<OpenProxy> {
  const bare = (hostname: string) => addressOf(hostname, place);
  const isOwn = (hostname: string) => isLoopback(bare(hostname)) || isAt(bare(hostname), place);
  const tunnels = new Set<Socket>();
  const server = createServer((incoming, outgoing) => {
    const url = URL.canParse(incoming.url ?? "") ? new URL(incoming.url ?? "") : undefined;
    if (url === undefined || !isOwn(url.hostname)) return void outgoing.writeHead(400).end();
    const { host, port, pathname } = { host: bare(url.hostname), port: url.port, pathname: url.pathname };
    const onward = request({
      host,
      port,
      path: pathname,
      method: incoming.method,
      headers: incoming.headers,
    });
    onward.on("response", (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
    onward.on("error", () => outgoing.writeHead(502).end());
    incoming.pipe(onward);
  });
  server.on("connect", (incoming, client: Socket, head) => {
    const target = URL.canParse(`http://${incoming.url}`) ? new URL(`http://${incoming.url}`) : undefined;
    if (target === undefined || !isOwn(target.hostname)) return void client.end("HTTP/1.1 400 No\r\n\r\n");
    const onward = connect(Number(target.port || 80), bare(target.hostname));
    for (const socket of [client, onward]) {
      tunnels.add(socket);
      socket.on("close", () => tunnels.delete(socket));
    }
    onward.on("connect", () => {
      client.write("HTTP/1.1 200 Connected\r\n\r\n");
      onward.write(head);
      client.pipe(onward).pipe(client);
    });
    onward.on("error", () => client.destroy());
    client.on("error", () => onward.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const url = `http://127.0.0.1:${port}`;
  return {
    env: { HTTP_PROXY: url, HTTPS_PROXY: url },
    close: async () => {
      for (const socket of tunnels) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Names of the listed zone would be resolved again when it connects: by then they have other addresses. */
function addressOf(hostname: string, { address, neighbour, listedName, unlistedName }: DecoyPlace): string {
  const host = hostname.replace(/^\[|\]$|\.$/g, "");
  if (host === "localhost") return host;
  if (host === listedName || host === unlistedName || host.endsWith(`.${keysZone}`)) return address;
  return host.endsWith(`.${listedZone}`) ? neighbour : host;
}

const isAt = (host: string, { address, neighbour }: DecoyPlace) => [address, neighbour].includes(host);

/** Tests send traffic to this host only, including the controls. */
const isLoopback = (host: string) => /^(localhost|127\.\d+\.\d+\.\d+|::1)$/i.test(host);
