/**
 * What lies beyond the cluster: answers at every address and port that is nowhere else, as TCP or UDP. A connection
 * succeeds, an HTTP request gets a line, a datagram comes back, marked as an answer where it is a DNS query.
 */
import { createSocket } from "node:dgram";
import { createServer } from "node:http";

createServer((_, response) => response.end("beyond the cluster\n")).listen(80);

const datagrams = createSocket("udp4");
datagrams.on("message", (message, { port, address }) => {
  // The bit that tells an answer from a query.
  if (message.length >= 12) message.writeUInt8(message.readUInt8(2) | 0x80, 2);
  datagrams.send(message, port, address);
});
datagrams.bind(53);
