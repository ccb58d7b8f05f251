import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { operatorPolicy } from "@ambit/egress";
import { makeAuthority } from "@ambit/egress/credentials";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sendGuarded } from "../../src/files/guarded-request.js";

const loopback = operatorPolicy({ privateHosts: "refuse", allowedRanges: ["127.0.0.0/8", "::1"] });
const noPrivate = operatorPolicy({ privateHosts: "refuse", allowedRanges: [] });
const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "/plain": (response) => void response.end("{}"),
  "/redirect": (response) => void response.writeHead(302, { location: "/plain" }).end(),
  "/huge": (response) => {
    const write = () => {
      while (!response.destroyed && response.write(Buffer.alloc(262_144)));
    };
    response.on("drain", write);
    write();
  },
  "/cut": (response) => {
    response.writeHead(200, { "content-length": 100 }).write("{");
    setImmediate(() => response.destroy());
  },
  "/slow": (response) => void response.writeHead(200).write("{"),
};
let address: string;
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
    ({ url = "" }, response) => answers[url]?.(response),
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

const send = (path: string, policy = loopback, signal = AbortSignal.timeout(60_000)) =>
  sendGuarded({ method: "GET", url: new URL(path, address), headers: {} }, policy, signal);

it("reads a whole answer, and follows no redirect", async () => {
  await expect(send("/plain")).resolves.toEqual({ status: 200, body: "{}" });
  await expect(send("/redirect")).resolves.toEqual({ status: 302, body: "" });
});

it("reaches no address that the operator doesn't allow, by a name or by itself", async () => {
  await expect(send("/plain", noPrivate)).rejects.toThrow(/127\.0\.0\.1|::1/);
  const port = new URL(address).port;
  await expect(send(`https://127.0.0.1:${port}/plain`, noPrivate)).rejects.toThrow("127.0.0.1");
});

it("gives up an answer that is too large or cut off, or when its caller does", async () => {
  await expect(send("/huge")).rejects.toThrow("more than 1048576 bytes");
  await expect(send("/cut")).rejects.toThrow(/aborted|cut off|hang up/);
  const caller = new AbortController();
  const slow = send("/slow", loopback, caller.signal);
  caller.abort(new Error("enough"));
  await expect(slow).rejects.toThrow();
});
