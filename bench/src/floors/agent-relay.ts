/**
 * The reference for a server between an agent and its caller: `POST /` with a script runs the demo agent, driven by the ACP
 * SDK, and writes each piece of its answer as a line of NDJSON, at the reader's pace.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { openAgent } from "./driven-agent.js";

const server = createServer(async (request, response) => {
  try {
    const script = await text(request);
    if (script === "") response.end();
    else await relay(script, response);
  } catch {
    response.destroy();
  }
});

async function relay(script: string, response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  const agent = await openAgent(undefined, undefined, (delta) => {
    const event = { type: "message_delta", id: "block-1", delta };
    const hasRoom = response.write(`${JSON.stringify({ kind: "event", event })}\n`);
    return hasRoom ? undefined : once(response, "drain").then(() => undefined);
  });
  try {
    await agent.prompt(script);
    response.end('{"kind":"result","result":{"ok":true}}\n');
  } finally {
    await agent.close();
  }
}

server.listen(Number(process.argv[2]), process.argv[3] ?? "127.0.0.1");
