import { once } from "node:events";
import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import { buffer, text } from "node:stream/consumers";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { listening } from "@ambit/fakes/listening";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { exchange, HttpClient, type HttpClientOptions, openResponse } from "../../src/client/index.js";
import { makeAuthority } from "../../src/credentials/index.js";
import { type AddressPolicy, operatorPolicy, whyForbidden } from "../../src/index.js";

const loopback = operatorPolicy({ privateHosts: "refuse", allowedRanges: ["127.0.0.0/8", "::1"] });
const noPrivate = operatorPolicy({ privateHosts: "refuse", allowedRanges: [] });
const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "/plain": (response) => void response.end("content"),
  "/redirect": (response) => void response.writeHead(302, { location: "/plain" }).end(),
  "/cut": (response) => {
    response.writeHead(200, { "content-length": 100 }).write("{");
    setImmediate(() => response.destroy());
  },
  "/slow": (response) => void response.writeHead(200).write("{"),
  "/huge": (response) => {
    const write = () => {
      while (!response.destroyed && response.write(Buffer.alloc(262_144)));
    };
    response.on("drain", write);
    write();
  },
  "/upgrade": (response) =>
    void response.socket?.end("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n"),
  "/zipped": (response) => void response.writeHead(200, { "content-encoding": "gzip" }).end("as it is"),
};
let address: string;
let asked = 0;
let close: () => void;

beforeAll(async () => {
  const authority = await makeAuthority();
  setDefaultCACertificates([...getCACertificates("default"), authority.certificate]);
  const server = createServer(
    {
      SNICallback: (name, done) => {
        authority.contextFor(name).then((context) => done(null, context), done);
      },
    },
    ({ url = "" }, response) => {
      asked += 1;
      answers[url]?.(response);
    },
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  address = `https://localhost:${typeof bound === "object" ? bound?.port : ""}`;
  close = () => {
    server.closeAllConnections();
    server.close();
  };
});
afterAll(() => close());

const guardOf = (policy: AddressPolicy) => ({
  whyClosed: (address: string, port: number) => whyForbidden([policy], address, port),
});
const open = (path: string, policy = loopback, signal = AbortSignal.timeout(60_000)) =>
  openResponse({ url: new URL(path, address), headers: {} }, guardOf(policy), signal);
const whole = (path: string, signal = AbortSignal.timeout(60_000)) =>
  exchange({ url: new URL(path, address), headers: {} }, guardOf(loopback), { maxBytes: 1_048_576, signal });

it("gives the content as it was sent, and follows no redirect", async () => {
  const opened = await open("/plain");
  expect(opened).toMatchObject({ statusCode: 200, headers: { "content-length": "7" } });
  expect(String(await buffer(opened))).toBe("content");
  expect(String(await buffer(await open("/zipped")))).toBe("as it is");
  const redirect = await open("/redirect");
  expect(redirect).toMatchObject({ statusCode: 302, headers: { location: "/plain" } });
  redirect.destroy();
  await expect(whole("/plain")).resolves.toEqual({ status: 200, body: "content" });
  await expect(whole("/redirect")).resolves.toEqual({ status: 302, body: "" });
});

it("reaches no address that the operator doesn't allow, by a name or by itself", async () => {
  // The control is above: the same host answers where it is allowed.
  const before = asked;
  await expect(open("/plain", noPrivate)).rejects.toThrow(/127\.0\.0\.1|::1/);
  const port = new URL(address).port;
  for (const scheme of ["https", "http"])
    await expect(open(`${scheme}://127.0.0.1:${port}/plain`, noPrivate)).rejects.toThrow("127.0.0.1");
  await expect(open("http://169.254.169.254/latest", loopback)).rejects.toThrow("metadata");
  expect(asked).toBe(before);
});

it("fails where an answer is cut off, too large or an upgrade, and ends with its caller", async () => {
  await expect(buffer(await open("/cut"))).rejects.toThrow();
  await expect(whole("/cut")).rejects.toThrow();
  await expect(whole("/huge")).rejects.toThrow("more than 1048576 bytes");
  await expect(open("/upgrade")).rejects.toThrow("it changed the protocol");
  const caller = new AbortController();
  const slow = await open("/slow", loopback, caller.signal);
  const read = buffer(slow);
  caller.abort(new Error("enough"));
  await expect(read).rejects.toThrow();
  (await open("/slow")).destroy();
});

describe("a client with kept connections", () => {
  /** A server that shows which connection each request came over. */
  async function serving(answer: (request: IncomingMessage, response: ServerResponse) => void) {
    const connections: unknown[] = [];
    const requests: string[] = [];
    const server = createPlainServer(async (request, response) => {
      requests.push(`${request.method} ${request.url} ${await text(request)}`);
      answer(request, response);
    }).on("connection", (socket) => connections.push(socket));
    const port = await listening(server, onTestFinished);
    return { url: new URL(`http://127.0.0.1:${port}/a`), connections, requests };
  }
  const clientOf = (options: HttpClientOptions = {}) => {
    const client = new HttpClient({}, options);
    onTestFinished(() => client.close());
    return client;
  };
  const { signal } = new AbortController();

  it("sends requests one after another over one connection, each with its own body", async () => {
    const { url, connections, requests } = await serving((_request, response) => response.end("here"));
    const client = clientOf();
    for (const method of ["POST", "DELETE", "GET"])
      expect(await text(await client.send({ method, url, headers: {}, body: "b" }, { signal }))).toBe("here");
    expect(requests).toEqual(["POST /a b", "DELETE /a b", "GET /a b"]);
    expect(connections).toHaveLength(1);
    // The control: connections that aren't kept.
    const apart = clientOf({ idleMs: 0 });
    for (const _ of [1, 2]) await text(await apart.send({ url, headers: {} }, { signal }));
    expect(connections).toHaveLength(3);
  });

  it("asks once more when the connection is ready, new or kept, and sends nothing if that throws", async () => {
    const { url, requests } = await serving((_request, response) => response.end());
    const client = clientOf();
    const onConnected = () => {
      throw new Error("not any more");
    };
    for (const count of [0, 1]) {
      await expect(client.send({ url, headers: {} }, { signal, onConnected })).rejects.toThrow(
        "not any more",
      );
      expect(requests).toHaveLength(count);
      await text(await client.send({ url, headers: {} }, { signal }));
    }
  });

  it("fails with ETIMEDOUT where the server takes too long: to connect, to answer, between two bytes", async () => {
    const { url } = await serving(({ headers }, response) => {
      if (headers.begins === "yes") response.write("{");
    });
    const send = (options: HttpClientOptions, headers = {}) =>
      clientOf(options).send({ url, headers }, { signal });
    const mute = new HttpClient({ lookup: () => new Promise(() => {}) }, { connectMs: 20 });
    const late = { code: "ETIMEDOUT" };
    await expect(
      mute.send({ url: new URL("http://mute.invalid/"), headers: {} }, { signal }),
    ).rejects.toThrow("no connection within 20 ms");
    await expect(send({ firstByteMs: 20 })).rejects.toMatchObject(late);
    const begun = await send({ silenceMs: 20 }, { begins: "yes" });
    await expect(text(begun)).rejects.toMatchObject(late);
  });

  it("doesn't take a body for silent that waits for its reader", async () => {
    const { url } = await serving((_request, response) => {
      response.write("first");
    });
    const response = await clientOf({ silenceMs: 20 }).send({ url, headers: {} }, { signal });
    await expect.poll(() => response.readableLength).toBe(5);
    const judged = new Promise((resolve) => response.socket.on("timeout", resolve));
    await judged;
    expect(response.destroyed).toBe(false);
    await expect(text(response)).rejects.toMatchObject({ code: "ETIMEDOUT" });
  });

  it("ends its open requests and bodies when it is closed or its caller leaves", async () => {
    const { url } = await serving(({ headers }, response) => {
      if (headers.begins === "yes") response.write("{");
    });
    for (const end of ["close", "leave"] as const) {
      const client = clientOf();
      const caller = new AbortController();
      const send = (headers = {}) => client.send({ url, headers }, { signal: caller.signal });
      const body = text(await send({ begins: "yes" }));
      const waiting = send();
      if (end === "close") client.close();
      else caller.abort(new Error("the caller left"));
      const why = end === "close" ? "the HTTP client is closed" : "the caller left";
      await expect(body).rejects.toThrow(why);
      await expect(waiting).rejects.toThrow(why);
      await expect(send()).rejects.toThrow(why);
    }
  });
});
