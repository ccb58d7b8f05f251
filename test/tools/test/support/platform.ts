import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { z } from "zod";

const envelopeSchema = z.object({
  data: z.object({
    id: z.string(),
    function: z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()) }),
  }),
});

export interface ArrivedCall {
  readonly name: string;
  readonly arguments: Record<string, unknown>;
}

export interface Platform extends AsyncDisposable {
  readonly endpoint: string;
  /** Received calls in order. One that isn't here wasn't executed. */
  readonly calls: ArrivedCall[];
}

/** A platform's tool endpoint on loopback. @param answer a call's content; default: its arguments. */
export async function startPlatform(
  answer: (call: ArrivedCall) => unknown = (call) => call.arguments,
): Promise<Platform> {
  const calls: ArrivedCall[] = [];
  const server = createServer(async (request, response) => {
    const { data } = envelopeSchema.parse(await json(request));
    const call = { name: data.function.name, arguments: data.function.arguments };
    calls.push(call);
    const content = JSON.stringify(await answer(call));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ call: { id: data.id, data: { content } } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    endpoint: `http://127.0.0.1:${port}/tools/call`,
    calls,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
