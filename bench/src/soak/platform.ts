import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { z } from "zod";

export interface Platform extends AsyncDisposable {
  readonly endpoint: string;
}

const envelopeSchema = z.object({
  data: z.object({ id: z.string(), function: z.object({ name: z.string() }) }),
});

/** The platform's responses, by the tool's name. */
const answers: Readonly<Record<string, (response: ServerResponse, id: string) => void>> = {
  answers: (response, id) => reply(response, id, "18 degrees"),
  isSilent: () => {},
  hangsUp: (response) => response.destroy(),
  isLong: (response, id) => reply(response, id, "x".repeat(5_000_000)),
  isDeep: (response) => response.end(`{"call":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}`),
  fails: (response) => response.writeHead(500).end("out of order"),
  isEndless: (response) => {
    const pour = () => {
      while (!response.destroyed && response.write("x".repeat(65_536)));
    };
    response.on("drain", pour).writeHead(200, { "content-type": "application/json" });
    pour();
  },
};

export const brokenTools = Object.keys(answers).filter((name) => name !== "answers");

/** A platform on loopback, most of whose tools are broken. */
export async function startPlatform(): Promise<Platform> {
  const server = createServer(async (request, response) => {
    const parsed = envelopeSchema.safeParse(await json(request));
    if (!parsed.success) return void response.writeHead(400).end();
    const { id, function: called } = parsed.data.data;
    (answers[called.name] ?? answers.fails)?.(response, id);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    endpoint: `http://127.0.0.1:${port}/tools/call`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function reply(response: ServerResponse, id: string, content: string): void {
  const data = { role: "tool", tool_call_id: id, content };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ call: { id, status: { code: "STATUS_CODE_OK" }, data } }));
}
