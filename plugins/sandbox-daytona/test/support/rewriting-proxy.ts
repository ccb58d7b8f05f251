import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";

/** A proxy for the platform's API that changes its responses about one sandbox. Records what it is asked to make. */
export async function rewritingProxy(
  apiUrl: string,
  rewrite: (body: Record<string, unknown>) => Record<string, unknown>,
): Promise<{ url: string; created: unknown[]; close(): Promise<void> }> {
  const created: unknown[] = [];
  const target = new URL(apiUrl);
  const server = createServer((request, response) => {
    void forward(request).then(({ status, body }) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(body);
    });
  });
  const forward = async (request: IncomingMessage): Promise<{ status: number; body: string }> => {
    const sent = await buffer(request);
    const isCreate = request.method === "POST" && request.url === `${target.pathname}/sandbox`;
    if (isCreate) created.push(JSON.parse(sent.toString()));
    const answer = await fetch(`${target.origin}${request.url}`, {
      method: request.method ?? "GET",
      headers: { authorization: request.headers.authorization ?? "", "content-type": "application/json" },
      ...(sent.length > 0 ? { body: new Uint8Array(sent) } : {}),
    });
    const text = await answer.text();
    const isSandbox = isCreate || (request.method === "GET" && /\/sandbox\/[^/]+$/.test(request.url ?? ""));
    const body = isSandbox && answer.ok ? JSON.stringify(rewrite(JSON.parse(text))) : text;
    return { status: answer.status, body };
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no address");
  return {
    url: `http://127.0.0.1:${address.port}${target.pathname}`,
    created,
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
