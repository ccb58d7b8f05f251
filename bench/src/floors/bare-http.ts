/**
 * The reference for the server: Node's own HTTP and nothing else. `GET` and `POST` return a few bytes of JSON after the
 * body was read; `POST /events?n=…` streams n records, each written separately, and waits for a slow reader; `POST
 * /relay?n=…` does the same with records from an asynchronous generator.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";

const answer = JSON.stringify({ ok: true });

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    if (url.pathname === "/events") {
      stream(response, Number(url.searchParams.get("n")), url.searchParams.get("batch") !== null).catch(() =>
        response.destroy(),
      );
      return;
    }
    if (url.pathname === "/relay") {
      relay(response, Number(url.searchParams.get("n"))).catch(() => response.destroy());
      return;
    }
    Buffer.concat(chunks);
    response.writeHead(200, { "content-type": "application/json", "content-length": answer.length });
    response.end(answer);
  });
});

const batchSize = 16 * 1024;

async function stream(response: ServerResponse, count: number, batched: boolean): Promise<void> {
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  let batch = "";
  for (let index = 0; index < count; index += 1) {
    const event = { type: "message_delta", id: "block-1", delta: `${index} ` };
    batch += `${JSON.stringify({ kind: "event", event })}\n`;
    if (batched && batch.length < batchSize) continue;
    if (!response.write(batch)) await once(response, "drain");
    batch = "";
  }
  response.end(batch);
}

async function* generated(count: number) {
  for (let index = 0; index < count; index += 1) {
    yield { type: "message_delta", id: "block-1", delta: `${index} ` };
  }
}

async function relay(response: ServerResponse, count: number): Promise<void> {
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  for await (const event of generated(count)) {
    if (!response.write(`${JSON.stringify({ kind: "event", event })}\n`)) await once(response, "drain");
  }
  response.end();
}

server.listen(Number(process.argv[2]), process.argv[3] ?? "127.0.0.1");
