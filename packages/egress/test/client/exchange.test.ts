import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import { buffer } from "node:stream/consumers";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { exchange, openResponse } from "../../src/client/index.js";
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
