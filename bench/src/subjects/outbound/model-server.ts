/** A thread: a scripted model server. The request's `user-agent` says how it responds. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parentPort } from "node:worker_threads";
import { pacedWriter } from "./paced.js";

const event = Buffer.from(
  `data: ${JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "word " } })}\n\n`,
);
const last = 'data: {"type":"message_delta","usage":{"input_tokens":9,"output_tokens":9}}\n\n';

/** The number of events, and events per second: `3`, `1000/1000`. */
const server = createServer(async (request, response) => {
  for await (const _part of request);
  const [events = 0, perSecond] = String(request.headers["user-agent"]).split("/").map(Number);
  response.writeHead(200, { "content-type": "text/event-stream" });
  const bytesPerSecond = perSecond === undefined ? undefined : perSecond * event.length;
  await pacedWriter(response, event, events * event.length, bytesPerSecond);
  response.end(last);
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  parentPort?.postMessage(port);
});
