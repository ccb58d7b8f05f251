import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import { buffer } from "node:stream/consumers";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { operatorPolicy } from "@ambit/egress";
import { makeAuthority } from "@ambit/egress/credentials";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openGuarded } from "../../src/files/guarded-download.js";

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

const open = (path: string, policy = loopback, signal = AbortSignal.timeout(60_000)) =>
  openGuarded({ url: new URL(path, address), headers: {} }, policy, signal);

it("gives the content as it was sent, and follows no redirect", async () => {
  const opened = await open("/plain");
  expect(opened).toMatchObject({ status: 200, size: 7 });
  expect(String(await buffer(opened.content))).toBe("content");
  expect(String(await buffer((await open("/zipped")).content))).toBe("as it is");
  const redirect = await open("/redirect");
  expect(redirect).toMatchObject({ status: 302, location: "/plain" });
  redirect.close();
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

it("fails where it is cut off, and ends with its caller", async () => {
  const cut = await open("/cut");
  await expect(buffer(cut.content)).rejects.toThrow();
  const caller = new AbortController();
  const slow = await open("/slow", loopback, caller.signal);
  const read = buffer(slow.content);
  caller.abort(new Error("enough"));
  await expect(read).rejects.toThrow();
  (await open("/slow")).close();
});
