import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import type { Directory } from "../container/directory.js";

const headerLength = 12;
const typeA = 1;
const nameError = 3;

interface Question {
  readonly name: string;
  readonly type: number;
  /** Where the question ends in the message. */
  readonly end: number;
}

function questionOf(message: Buffer): Question | undefined {
  const labels: string[] = [];
  let position = headerLength;
  for (;;) {
    const length = message[position];
    if (length === undefined || length > 63) return undefined;
    position += 1;
    if (length === 0) break;
    labels.push(message.subarray(position, position + length).toString("latin1"));
    position += length;
  }
  if (message.length < position + 4) return undefined;
  return { name: labels.join(".").toLowerCase(), type: message.readUInt16BE(position), end: position + 4 };
}

/** The response to one query; undefined for an invalid one. `address` is called for every name. */
export function answer(query: Buffer, address: (name: string) => string | undefined): Buffer | undefined {
  const question = questionOf(query);
  if (!question) return undefined;
  const found = address(question.name);
  const hasAnswer = found !== undefined && question.type === typeA;

  const header = Buffer.from(query.subarray(0, headerLength));
  // A response, recursion desired and available; an unknown name is an error, a missing type isn't.
  header.writeUInt16BE(0x8180 | (found === undefined ? nameError : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(hasAnswer ? 1 : 0, 6);
  header.writeUInt32BE(0, 8);
  const parts = [header, query.subarray(headerLength, question.end)];
  if (hasAnswer) {
    const record = Buffer.alloc(16);
    record.writeUInt16BE(0xc000 | headerLength, 0); // The question's name.
    record.writeUInt16BE(typeA, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt32BE(1, 6); // Time to live in seconds.
    record.writeUInt16BE(4, 10);
    for (const [index, part] of found.split(".").entries()) record[12 + index] = Number(part);
    parts.push(record);
  }
  return Buffer.concat(parts);
}

/** Resolves the world's names for every sandbox, and reports each query. It forwards nothing. */
export async function serveNames(
  directory: Directory,
  asked: (id: string, name: string) => void,
): Promise<void> {
  const respond = (query: Buffer, from: string | undefined) => {
    const id = directory.sandbox(from)?.id;
    return answer(query, (name) => {
      if (id !== undefined) asked(id, name);
      return directory.address(name);
    });
  };
  const datagrams = createSocket({ type: "udp4", reuseAddr: true }, (query, peer) => {
    const response = respond(query, peer.address);
    if (response) datagrams.send(response, peer.port, peer.address);
  });
  const streams = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.once("data", (data: Buffer) => {
      const response = respond(data.subarray(2), socket.remoteAddress);
      if (!response) {
        socket.destroy();
        return;
      }
      const length = Buffer.alloc(2);
      length.writeUInt16BE(response.length);
      socket.end(Buffer.concat([length, response]));
    });
  });
  await Promise.all([
    new Promise<void>((resolve, reject) => datagrams.once("error", reject).bind(53, "0.0.0.0", resolve)),
    new Promise<void>((resolve, reject) => streams.once("error", reject).listen(53, "0.0.0.0", resolve)),
  ]);
}
