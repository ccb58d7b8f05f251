// needs: openssl
import { spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hashedName } from "../../src/credentials/index.js";
import { connectThrough, describeHere, exchange, gather } from "../proxy/session.js";
import { ask, host, openWorld, otherHost, tlsThrough, value, type World } from "./brokered.js";

let world: World;
beforeAll(async () => {
  world = await openWorld({
    listener: (request, response) => {
      const authorization = request.headers.authorization ?? "none";
      switch (request.url) {
        case "/echo":
          response.writeHead(200, { "x-echo": authorization, "content-type": "text/plain" });
          // In pieces, so that the value lies across them.
          for (const character of `you sent ${authorization}; ${btoa(authorization)}`)
            response.write(character);
          return void response.end();
        case "/gzip":
          return void response
            .writeHead(200, { "content-encoding": "gzip" })
            .end(gzipSync(`you sent ${authorization}`));
        case "/unknown":
          return void response.writeHead(200, { "content-encoding": "secret" }).end(authorization);
        case "/port":
          return void response.end(String(request.socket.remotePort));
        case "/length":
          return void response.writeHead(200, { "content-length": "6" }).end("length");
        case "/parts": {
          const [, from = "", to = ""] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
          if (from === "") return void response.end(authorization);
          return void response.writeHead(206).end(authorization.slice(Number(from), Number(to) + 1));
        }
        case "/redirect":
          return void response
            .writeHead(302, { location: `https://${otherHost}/?token=${authorization}` })
            .end();
        default:
          response.end("hello");
      }
    },
  });
});
afterAll(() => world.close());

const bearer = () => ({ authorization: `Bearer ${world.placeholder}` });
const received = () => world.origin.requests.at(-1);
const refusals = () => world.session.decisions.filter(({ allowed }) => !allowed).map(({ reason }) => reason);

describe("a request to a credential's host", () => {
  it("arrives with the value, while the client has only a placeholder", async () => {
    expect(await ask(world, "/a?b=c", { headers: bearer() })).toMatchObject({ status: 200, body: "hello" });
    expect(received()).toMatchObject({ method: "GET", url: "/a?b=c" });
    expect(received()?.headers.join("\n")).toContain(`authorization\nBearer ${value}`);
    expect(world.placeholder).not.toContain(value.slice(4, 12));
    const [allowed] = world.session.decisions;
    expect(allowed).toMatchObject({
      allowed: true,
      reason: expect.stringContaining("TLS ends here for TOKEN"),
    });
  });

  it("keeps its body, and one connection for many requests", async () => {
    const socket = await tlsThrough(world);
    const ports = new Set<string>();
    for (const body of ["one", "two"]) {
      const answer = await ask(world, "/port", { method: "POST", body, headers: bearer(), socket });
      ports.add(answer.body);
      expect(received()?.body).toBe(body);
    }
    expect(ports.size).toBe(1);
    socket.destroy();
  });

  it("loses hop-by-hop headers, and requests a readable encoding", async () => {
    const hop = { connection: "close, x-hop", "x-hop": "1", te: "trailers", "accept-encoding": "gzip" };
    await ask(world, "/", { headers: { ...bearer(), ...hop } });
    const headers = received()?.headers.join("\n").toLowerCase();
    expect(headers).toContain("accept-encoding\nidentity");
    expect(headers).not.toMatch(/x-hop|te\ntrailers|connection\nclose/);
  });
});

describe("a value that a server repeats", () => {
  it("is removed from headers and body, across chunks and in base64", async () => {
    const { headers, body } = await ask(world, "/echo", { headers: bearer() });
    expect(headers["x-echo"]).toBe(`Bearer ${world.placeholder}`);
    expect(body).toContain(`you sent Bearer ${world.placeholder}; `);
    expect(body + atob(body.split("; ")[1] ?? "")).not.toContain(value.slice(3, -3));
  });

  it.each<[string, (text: string) => string]>([
    ["in JSON", (text) => JSON.stringify(text)],
    ["in JSON within JSON", (text) => JSON.stringify(JSON.stringify({ text }))],
    ["in JSON as PHP writes it", (text) => JSON.stringify(text).replaceAll("/", "\\/")],
    [
      "in JSON as Go writes it",
      (text) => JSON.stringify(text).replaceAll("&", "\\u0026").replaceAll("<", "\\u003c"),
    ],
    ["in a page", (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")],
    ["in a link", (text) => encodeURIComponent(text).replaceAll(/%../g, (code) => code.toLowerCase())],
    ["in a form", (text) => new URLSearchParams({ text }).toString()],
    ["in hex", (text) => Buffer.from(text).toString("hex")],
  ])("is removed %s", async (_what, write) => {
    const special = "s3cr3t/w&th<all of+them";
    const echoing = await openWorld(
      { listener: ({ headers }, response) => response.end(write(headers["x-key"]?.toString() ?? "none")) },
      { value: special, as: { header: "x-key" } },
    );
    const { body } = await ask(echoing, "/", { headers: { "x-key": echoing.placeholder } });
    expect(body).toHaveLength(write(special).length);
    expect(body).not.toContain(write(special).slice(3, -3));
    await echoing.close();
  });

  it("is removed from an encoded response, which arrives decoded", async () => {
    const { headers, body } = await ask(world, "/gzip", { headers: bearer() });
    expect(headers["content-encoding"]).toBeUndefined();
    expect(body).toBe(`you sent Bearer ${world.placeholder}`);
  });

  it("isn't passed on in an unknown encoding", async () => {
    const answer = await ask(world, "/unknown", { headers: bearer() });
    expect(answer).toMatchObject({ status: 502, body: expect.stringContaining("can't be searched") });
  });

  it("is removed from a redirect, which the client may follow with its placeholder", async () => {
    const { headers } = await ask(world, "/redirect", { headers: bearer() });
    expect(headers.location).toContain(world.placeholder);
  });

  it("isn't given away in parts, none of which is the whole value", async () => {
    const inParts = async (path: string, headers: Record<string, string>) => {
      const parts = ["bytes=0-20", "bytes=21-60"];
      const got = await Promise.all(
        parts.map((range) => ask(world, path, { headers: { ...headers, range } })),
      );
      return got.map(({ body }) => body);
    };
    const whole = `Bearer ${world.placeholder}`;
    expect(await inParts("/parts", bearer())).toEqual([whole, whole]);
    // The control: a part is a part where no credential is on its way, and this is how a value would be put together.
    expect((await inParts("/parts", { authorization: `Bearer ${value}` })).join("")).toBe(`Bearer ${value}`);
  });

  it("changes no length", async () => {
    expect((await ask(world, "/length")).headers["content-length"]).toBe("6");
  });
});

describe("a placeholder isn't replaced elsewhere", () => {
  it("in another header: refused in plain text, and recorded", async () => {
    const before = world.origin.requests.length;
    const answer = await ask(world, "/", { headers: { "x-other": world.placeholder } });
    expect(answer).toMatchObject({ status: 403, headers: { "content-type": "text/plain; charset=utf-8" } });
    expect(answer.body).toContain("TOKEN is sent only as Bearer in Authorization, not in x-other");
    await expect.poll(() => refusals().at(-1)).toContain("not in x-other");
    expect(world.origin.requests).toHaveLength(before);
  });

  it("to a host of the list in the Host header, inside a tunnel to its own", async () => {
    const headers = { ...bearer(), host: `${otherHost}:${world.origin.port}` };
    expect(await ask(world, "/", { headers })).toMatchObject({ status: 403 });
    await expect.poll(() => refusals().at(-1)).toContain(`the Host header names ${otherHost}`);
  });

  it("to another server name than the tunnel's", async () => {
    await expect(tlsThrough(world, { name: otherHost })).rejects.toThrow();
    await expect.poll(() => refusals().at(-1)).toContain(`names ${otherHost}, not ${host}`);
  });

  it("unencrypted: through the proxy, and inside a tunnel", async () => {
    const authority = `${host}:${world.origin.port}`;
    const lines = ["", `Host: ${authority}`, `Authorization: Bearer ${world.placeholder}`, "", ""].join(
      "\r\n",
    );
    const answer = await exchange(world.session.path, `GET http://${authority}/ HTTP/1.1${lines}`);
    expect(answer).toContain("403 Refused by Ambit's boundary");
    const { socket } = await connectThrough(world.session.path, authority);
    socket.write(`GET / HTTP/1.1${lines}`);
    expect((await gather(socket)).toString()).toContain("TOKEN is sent only over TLS");
    expect(refusals().slice(-2)).toEqual([
      expect.stringContaining("only over TLS"),
      expect.stringContaining("only over TLS"),
    ]);
  });

  it("as other bytes than TLS", async () => {
    const { socket } = await connectThrough(world.session.path, `${host}:${world.origin.port}`);
    socket.write(Buffer.from(`\u0000\u0001${world.placeholder}`));
    await gather(socket);
    await expect.poll(() => refusals().at(-1)).toContain("reached only over TLS");
  });

  it("in an upgrade, which is refused", async () => {
    const headers = { ...bearer(), connection: "upgrade", upgrade: "websocket" };
    expect(await ask(world, "/", { headers })).toMatchObject({ status: 426 });
  });

  it("over another protocol than HTTP/1.1", async () => {
    await expect(tlsThrough(world, { alpn: ["h2"] })).rejects.toThrow();
    const tls = await tlsThrough(world, { alpn: ["h2", "http/1.1"] });
    expect(tls.alpnProtocol).toBe("http/1.1");
    tls.destroy();
  });
});

describe("other hosts", () => {
  it("are passed through encrypted: the client talks to the server itself", async () => {
    const { socket } = await connectThrough(world.session.path, `${otherHost}:${world.origin.port}`);
    const { connect } = await import("node:tls");
    const tls = connect({ socket, servername: otherHost, rejectUnauthorized: false });
    await once(tls, "secureConnect");
    expect(tls.getPeerX509Certificate()?.subject).toContain(host);
    tls.destroy();
  });

  it("with a certificate of another authority get nothing", async () => {
    const stranger = await openWorld();
    const { openCredentialBroker } = await import("../../src/credentials/index.js");
    const { openSession, allow } = await import("../proxy/session.js");
    const hosts = [`${host}:${stranger.origin.port}`];
    const broker = await openCredentialBroker([{ name: "TOKEN", value, as: "bearer", hosts }]);
    const session = await openSession(allow([host]), { credentials: broker });
    const answer = await ask({ ...stranger, broker, session }, "/", {
      headers: { authorization: `Bearer ${broker.placeholders.TOKEN}` },
    });
    expect(answer).toMatchObject({ status: 502, body: expect.stringContaining("self-signed certificate") });
    expect(stranger.origin.requests).toEqual([]);
    await session.close();
    await stranger.close();
  });
});

describe("a server that has a trusted certificate for another name", () => {
  it("gets nothing", async () => {
    const other = await openWorld({}, {}, [otherHost]);
    const answer = await ask(other, "/", { headers: { authorization: `Bearer ${other.placeholder}` } });
    expect(answer).toMatchObject({
      status: 502,
      body: expect.stringContaining("does not match certificate"),
    });
    expect(other.origin.requests).toEqual([]);
    await other.close();
  });
});

describeHere("a client that disconnects", () => {
  it("leaves no connection, at any moment", async () => {
    for (const ms of [0, 1, 2, 4, 8]) {
      (await tlsThrough(world)).destroy();
      (await tlsThrough(world)).end();
      const tls = await tlsThrough(world);
      tls.write(`GET /echo HTTP/1.1\r\nHost: ${host}:${world.origin.port}\r\n\r\n`);
      await new Promise((resolve) => setTimeout(resolve, ms));
      tls.destroy();
    }
    await expect.poll(() => world.session.proxy.openSockets).toBe(0);
  });
});

describe("read-only access", () => {
  it("allows a git LFS download, and no upload", async () => {
    const reader = await openWorld({}, { access: "read" });
    const send = (operation: string) =>
      ask(reader, "/a.git/info/lfs/objects/batch", {
        method: "POST",
        headers: { authorization: `Bearer ${reader.placeholder}` },
        body: JSON.stringify({ operation, objects: [] }),
      });
    expect(await send("download")).toMatchObject({ status: 200 });
    expect(reader.origin.requests.at(-1)).toMatchObject({ body: '{"operation":"download","objects":[]}' });
    expect(await send("upload")).toMatchObject({ status: 403, body: expect.stringContaining("no download") });
    expect(reader.origin.requests).toHaveLength(1);
    await reader.close();
  });

  it("sends a git LFS batch as it was read, so that a server can't read an upload in it", async () => {
    const reader = await openWorld({}, { access: "read" });
    const send = (body: string) =>
      ask(reader, "/a.git/info/lfs/objects/batch", {
        method: "POST",
        headers: { authorization: `Bearer ${reader.placeholder}` },
        body,
      });
    const objects = [{ oid: "a".repeat(64), size: 3 }];
    const batch = { operation: "download", transfers: ["basic"], ref: { name: "refs/heads/main" }, objects };
    const bodies = [
      JSON.stringify({ ...batch, Operation: "upload", OPERATION: "upload" }),
      JSON.stringify(batch).replace("{", '{"operation":"upload",'),
      JSON.stringify({ ...batch, objects: [{ ...objects[0], Actions: { upload: {} } }] }),
    ];
    for (const body of bodies) {
      expect(await send(body)).toMatchObject({ status: 200 });
      expect(JSON.parse(reader.origin.requests.at(-1)?.body ?? "")).toEqual(batch);
    }
    for (const body of ["[]", "{", '{"operation":"download"}', '{"operation":"download","objects":[1]}'])
      expect(await send(body)).toMatchObject({ status: 403 });
    await reader.close();
  });
});

describe("the session's authority", () => {
  it("signs only for a host's name, and has the file name that OpenSSL looks for", async () => {
    const tls = await tlsThrough(world);
    const leaf = tls.getPeerX509Certificate();
    expect(leaf?.subjectAltName).toBe(`DNS:${host}`);
    expect(leaf?.ca).toBe(false);
    tls.destroy();
    const authority = new X509Certificate(world.broker.authority);
    expect(authority.ca).toBe(true);
    const asked = spawnSync("openssl", ["x509", "-noout", "-hash"], { input: world.broker.authority });
    expect(`${asked.stdout.toString().trim()}.0`).toBe(hashedName());
  });
});
