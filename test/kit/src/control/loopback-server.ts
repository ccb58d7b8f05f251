import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type Exposure, type FetchHandler, newToken } from "@ambit/core/plugin";

/** Serves a handler to every process on this host, without a token. */
export async function serveOnLoopback(handler: FetchHandler): Promise<Exposure> {
  const server = createServer((incoming, outgoing) => {
    const disconnected = new AbortController();
    outgoing.on("close", () => disconnected.abort());
    const passOn = async () => {
      const response = await answer(handler, incoming, disconnected.signal);
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      for await (const chunk of response.body ?? []) {
        // No faster than the client reads.
        if (!outgoing.write(chunk) && !disconnected.signal.aborted)
          await drained(outgoing, disconnected.signal);
        if (disconnected.signal.aborted) return;
      }
      outgoing.end();
    };
    passOn().catch((error: unknown) =>
      outgoing.destroy(error instanceof Error ? error : new Error(String(error))),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    token: newToken(),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function drained(outgoing: ServerResponse, disconnected: AbortSignal): Promise<unknown> {
  // A client that leaves ends the wait as well.
  return once(outgoing, "drain", { signal: disconnected }).catch(() => undefined);
}

async function answer(
  handler: FetchHandler,
  incoming: IncomingMessage,
  signal: AbortSignal,
): Promise<Response> {
  const body: Buffer[] = [];
  for await (const chunk of incoming) body.push(chunk);
  const method = incoming.method ?? "GET";
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const hasBody = method !== "GET" && method !== "HEAD";
  return handler(
    new Request(`http://${incoming.headers.host ?? "127.0.0.1"}${incoming.url ?? "/"}`, {
      method,
      headers,
      signal,
      ...(hasBody ? { body: Buffer.concat(body) } : {}),
    }),
  );
}
