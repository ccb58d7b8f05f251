import { createServer, type RequestListener } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { operatorPolicy } from "@ambit/egress";
import { listening } from "@ambit/fakes/listening";
import { describe, expect, it, onTestFinished } from "vitest";
import { post } from "../../src/webhooks/webhooks.js";

const closed = operatorPolicy({ privateHosts: "refuse", allowedRanges: [] });
const open = operatorPolicy({ privateHosts: "allow", allowedRanges: [] });
const refused = { delivered: false, error: "the server's operator refuses its address", isFinal: true };

/** A receiver on loopback that counts its requests. */
async function receiver(respond: RequestListener = (_request, response) => void response.end()) {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? "");
    respond(request, response);
  });
  return { paths, port: await listening(server, onTestFinished) };
}

const send = (url: string, policy = open, signal = AbortSignal.timeout(10_000)) =>
  post({ url: new URL(url), headers: {}, body: "{}" }, policy, signal);

describe("posting a webhook", { retry: 0 }, () => {
  // An address is never looked up, so the guarded lookup doesn't see it.
  it.each(["127.0.0.1", "2130706433", "0x7f.1", "localhost"])(
    "reaches %s only where the operator allows private addresses",
    async (host) => {
      const { paths, port } = await receiver();
      const url = `http://${host}:${port}/`;
      expect(await send(url, closed)).toEqual(refused);
      expect(paths).toEqual([]);
      expect(await send(url)).toEqual({ delivered: true, status: 200 });
      expect(paths).toEqual(["/"]);
    },
  );

  it.each(["169.254.169.254", "[::ffff:169.254.169.254]", "[::ffff:127.0.0.1]"])(
    "never reaches %s, whatever the operator allows",
    async (host) => {
      expect(await send(`http://${host}/`)).toEqual(refused);
    },
  );

  it.each([
    [
      "another protocol",
      "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
      { error: "could not be reached (PROTOCOL_CHANGED)" },
    ],
    [
      "nothing but interim answers",
      "HTTP/1.1 102 Processing\r\n\r\n".repeat(100),
      { error: "no answer in time" },
    ],
    [
      "a body that doesn't end",
      "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n",
      { error: "no answer in time" },
    ],
    ["no HTTP", "\0\r\n\r\n", { error: expect.stringContaining("HPE_INVALID") }],
  ])("is over in time when its receiver answers %s", async (_, answer, outcome) => {
    const server = createTcpServer((socket) => {
      socket.on("error", () => {}).on("data", () => socket.write(answer));
      onTestFinished(() => void socket.destroy());
    });
    const port = await listening(server, onTestFinished);
    const sent = send(`http://127.0.0.1:${port}/`, open, AbortSignal.timeout(300));
    expect(await sent).toMatchObject({ delivered: false, ...outcome });
  });

  it("follows no redirect", async () => {
    const { paths, port } = await receiver((_request, response) => {
      response.writeHead(307, { location: "/elsewhere" }).end();
    });
    expect(await send(`http://127.0.0.1:${port}/`)).toMatchObject({
      delivered: false,
      status: 307,
      error: "HTTP 307: redirects are not followed",
    });
    expect(paths).toEqual(["/"]);
  });

  it("stops reading an endless response", async () => {
    const { port } = await receiver((_request, response) => {
      const write = () => {
        while (response.write(Buffer.alloc(16 * 1_024)));
        response.once("drain", write);
      };
      write();
    });
    expect(await send(`http://127.0.0.1:${port}/`)).toEqual({ delivered: true, status: 200 });
  });

  it("fails for a receiver that never responds, and for one that refuses the connection", async () => {
    const silent = await receiver(() => undefined);
    expect(await send(`http://127.0.0.1:${silent.port}/`, open, AbortSignal.timeout(50))).toEqual({
      delivered: false,
      error: "no answer in time",
    });
    expect(await send("http://127.0.0.1:1/")).toEqual({
      delivered: false,
      error: "could not be reached (ECONNREFUSED)",
    });
  });

  it("respects a receiver's Retry-After, and stops at 410", async () => {
    const { port } = await receiver((request, response) => {
      if (request.url === "/gone") response.writeHead(410).end();
      else response.writeHead(503, { "retry-after": request.url === "/soon" ? "7" : "later" }).end();
    });
    const base = `http://127.0.0.1:${port}`;
    expect(await send(`${base}/soon`)).toMatchObject({ isFinal: false, retryAfterMs: 7_000 });
    expect(await send(`${base}/vague`)).not.toHaveProperty("retryAfterMs");
    expect(await send(`${base}/gone`)).toMatchObject({ status: 410, isFinal: true });
  });
});
