/** A thread: a TLS server that answers `/<bytes>` with as many bytes, to whoever has the credential. */
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

const { key, certificate, authorization } = workerData;
const chunk = Buffer.alloc(65_536, "abcdefghijklmnopqrstuvwxyz\n");

const server = createServer({ key, cert: certificate }, (request, response) => {
  if (request.headers.authorization !== authorization) return void response.writeHead(401).end();
  let left = Number(request.url?.slice(1));
  response.writeHead(200, { "content-length": left });
  const write = () => {
    while (left > 0) {
      const piece = chunk.subarray(0, Math.min(left, chunk.length));
      left -= piece.length;
      if (!response.write(piece)) return void response.once("drain", write);
    }
    response.end();
  };
  write();
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  parentPort?.postMessage(port);
});
