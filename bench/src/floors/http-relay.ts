import { once } from "node:events";
import { Agent, createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";

export interface HttpRelay {
  readonly url: string;
  close(): Promise<void>;
}

/** The floor of the model route: a relay that forwards each request and response without reading them. */
export async function openHttpRelay(upstream: string): Promise<HttpRelay> {
  const agent = new Agent({ keepAlive: true });
  const server = createServer((request, response) => {
    const { method, headers } = request;
    const outgoing = httpRequest(new URL(request.url ?? "/", upstream), { method, headers, agent });
    outgoing.once("response", (incoming) => {
      response.writeHead(incoming.statusCode ?? 502, incoming.headers);
      incoming.pipe(response);
    });
    outgoing.once("error", () => response.destroy());
    request.pipe(outgoing);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      agent.destroy();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
