/** A thread: a TLS server that responds to `/<bytes>` with that number of bytes, if the request has the credential. */
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { pacedWriter } from "./paced.js";

const { key, certificate, authorization } = workerData;
const chunk = Buffer.alloc(65_536, "abcdefghijklmnopqrstuvwxyz\n");

const server = createServer({ key, cert: certificate }, (request, response) => {
  if (request.headers.authorization !== authorization) return void response.writeHead(401).end();
  const [, bytes, bytesPerSecond] = request.url?.split("/").map(Number) ?? [];
  response.writeHead(200, { "content-length": bytes });
  void pacedWriter(response, chunk, bytes ?? 0, bytesPerSecond).then(() => response.end());
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  parentPort?.postMessage(port);
});
