import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { linesEnd } from "../../src/proxy/http/paced-connection.js";
import { allow, gather, INTERNET, openSession } from "./session.js";

test.each([
  ["nothing", "", 0],
  ["no line", "x".repeat(1_000), 1_000],
  ["few lines", "a\r\n".repeat(127), 381],
  ["as many as are read at once, and more", "a\r\n".repeat(200), 384],
  ["line feeds alone", "\n".repeat(1_000), 1_000],
])("of %s, what is read at once ends at a line", (_what, text, end) => {
  expect(linesEnd(Buffer.from(text))).toBe(end);
});

const count = 20_000;
const body = Array.from({ length: count }, (_, at) => String(at % 10)).join("");
const chunks = `${[...body].map((byte) => `1\r\n${byte}\r\n`).join("")}0\r\n\r\n`;

const head = (url: string, host: string) =>
  `POST ${url} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`;

/** Sends a request in one go. @returns the response */
async function send(path: string, request: string): Promise<string> {
  const client = connect(path);
  onTestFinished(() => void client.destroy());
  client.write(request);
  return (await gather(client)).toString();
}

describe("a body in chunks of a single byte", () => {
  it("is read in turns of the event loop that all connections share", async () => {
    let [inTurn, most, bytes] = [0, 0, 0];
    const own = {
      port: 3128,
      listener: (request: IncomingMessage, response: ServerResponse) => {
        request.on("data", (piece: Buffer) => {
          bytes += piece.length;
          if (inTurn === 0) setImmediate(() => ([inTurn, most] = [0, Math.max(inTurn, most)]));
          inTurn += 1;
        });
        request.once("end", () => response.end());
      },
    };
    const session = await openSession(allow(["ok.test"]), { own });
    onTestFinished(() => session.close());
    const request = head("/", "127.0.0.1:3128") + chunks;
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(session.path, request)));
    for (const answer of answers) expect(answer).toContain("200 OK");
    expect(bytes).toBe(8 * count);
    expect(most).toBeLessThan(1_000);
  });

  it("reaches its server whole, in few pieces, and so does an answer", async () => {
    let pieces = 0;
    const origin = createServer((request, response) => {
      request.on("data", (piece: Buffer) => {
        pieces += 1;
        for (const byte of piece) response.write(Buffer.of(byte));
      });
      request.once("end", () => response.end());
    });
    await new Promise<void>((resolve) => origin.listen(0, INTERNET, resolve));
    onTestFinished(() => void origin.close());
    const address = origin.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const session = await openSession(allow(["ok.test"]));
    onTestFinished(() => session.close());
    const host = `ok.test:${port}`;
    const answer = await send(session.path, head(`http://${host}/`, host) + chunks);
    expect(pieces).toBeLessThan(count / 8);
    const lines = answer.slice(answer.indexOf("\r\n\r\n") + 4).split("\r\n");
    expect(lines.filter((_line, at) => at % 2 === 1).join("")).toBe(body);
    expect(lines.length).toBeLessThan(count / 4);
  });
});
