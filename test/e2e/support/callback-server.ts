import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { z } from "zod";

const envelopeSchema = z.object({
  data: z.object({
    id: z.string(),
    function: z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()) }),
  }),
});

export interface CallbackServer {
  readonly endpoint: string;
  readonly server: Server;
  /** The received calls, in order. */
  readonly calls: {
    readonly name: string;
    readonly arguments: unknown;
    readonly authorization: string | undefined;
  }[];
  /** Resolves when a call has arrived, even if it has no response yet. */
  readonly called: Promise<void>;
}

/** A platform's tool endpoint on loopback. @param answer the content. With a promise that never settles, calls hang. */
export async function callbackServer(
  answer: (name: string, given: Record<string, unknown>) => unknown,
): Promise<CallbackServer> {
  const calls: CallbackServer["calls"] = [];
  let arrived = () => {};
  const called = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const server = createServer(async (request, response) => {
    const envelope = envelopeSchema.safeParse(await json(request).catch(() => undefined));
    if (!envelope.success) {
      // Not a call: a client of an earlier server, which had this port.
      response.writeHead(400).end();
      return;
    }
    const { data } = envelope.data;
    calls.push({
      name: data.function.name,
      arguments: data.function.arguments,
      authorization: request.headers.authorization,
    });
    arrived();
    const content = JSON.stringify(await answer(data.function.name, data.function.arguments));
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        call: {
          id: data.id,
          status: { code: "STATUS_CODE_OK" },
          data: { role: "tool", tool_call_id: data.id, content },
        },
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { endpoint: `http://127.0.0.1:${port}/tools/call`, server, calls, called };
}

/** A tool of this platform. */
export function callbackTool(name: string, more: Record<string, unknown> = {}) {
  return { name, kind: "callback", callRef: `ref__${name}`, permission: "allow", ...more };
}
