import { describe, expect, it } from "vitest";
import { openBridged, textOf } from "../support/bridged.js";

const MB = 2 ** 20;

/** Runs a program of Node's inside with a handler's URL and token; what it prints. */
async function inside(
  sandbox: Awaited<ReturnType<typeof openBridged>>["sandbox"],
  program: string,
  url: string,
  token: string,
) {
  const child = await sandbox.spawn({ argv: [process.execPath, "-e", program, url, token], env: {} });
  const [stdout, stderr, exit] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exit]);
  if (exit.code !== 0) throw new Error(stderr);
  return stdout;
}

const prelude = `
const net = require("node:net");
const [, url, token] = [0, ...process.argv.slice(1)];
const port = Number(new URL(url).port);
const head = (more = "") => "GET / HTTP/1.1\\r\\nHost: a\\r\\nAuthorization: Bearer " + token + "\\r\\n" + more + "\\r\\n";
`;

describe("an exposed handler", () => {
  it("serves two hundred simultaneous connections", async () => {
    await using bridged = await openBridged();
    const { sandbox } = bridged;
    let answered = 0;
    const { url, token } = await sandbox.expose(async (request) => {
      answered += 1;
      return new Response(`${await request.text()} back`);
    });
    const program = `
      const [url, token] = process.argv.slice(1);
      const asked = Array.from({ length: 200 }, (_, n) => new Promise((resolve, reject) => {
        const request = require("node:http").request(url, { method: "POST", agent: false, headers: { authorization: "Bearer " + token } },
          async (response) => { let text = ""; for await (const piece of response) text += piece; resolve(text); });
        request.on("error", reject);
        request.end(String(n));
      }));
      Promise.all(asked).then((all) => console.log(JSON.stringify(all)));`;
    const said = await inside(sandbox, program, url, token);
    expect(JSON.parse(said)).toEqual(Array.from({ length: 200 }, (_, number) => `${number} back`));
    expect(answered).toBe(200);
  });

  it("drops connections over its limit, and serves again afterwards", async () => {
    await using bridged = await openBridged();
    const { sandbox } = bridged;
    const { url, token } = await sandbox.expose(() => new Response("here"));
    const program = `${prelude}
      let open = 0, dropped = 0;
      const sockets = Array.from({ length: 600 }, () => net.connect(port, "127.0.0.1"));
      for (const socket of sockets) socket.on("connect", () => open++).on("error", () => {}).on("close", () => dropped++);
      // Until those over the limit are dropped, or for as long as a busy machine may need.
      const begun = Date.now();
      const look = setInterval(() => {
        if (dropped < 600 - 256 && Date.now() - begun < 30000) return;
        clearInterval(look);
        const before = dropped;
        for (const socket of sockets) socket.destroy();
        setTimeout(() => {
          fetch(url, { headers: { authorization: "Bearer " + token } }).then(async (response) =>
            console.log(JSON.stringify({ before, text: await response.text() })));
        }, 500);
      }, 100);`;
    const { before, text } = JSON.parse(await inside(sandbox, program, url, token));
    expect(before).toBeGreaterThanOrEqual(600 - 256);
    expect(text).toBe("here");
  });

  it("is read completely by a slow client that closes its own half", async () => {
    await using bridged = await openBridged();
    const { sandbox } = bridged;
    const { url, token } = await sandbox.expose(() => new Response(Buffer.alloc(6 * MB, "x")));
    const program = `${prelude}
      const socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => socket.write(head("Connection: close\\r\\n")));
      let length = 0;
      socket.on("data", (bytes) => {
        if (length === 0) { socket.pause(); setTimeout(() => socket.resume(), 500); }
        length += bytes.length;
      });
      socket.on("end", () => { console.log(length); socket.end(); });`;
    expect(Number(await inside(sandbox, program, url, token))).toBeGreaterThan(6 * MB);
  });

  it("survives clients that send nothing, garbage or half a request, or disconnect early", async () => {
    await using bridged = await openBridged();
    const { sandbox, failures } = bridged;
    let length = 0;
    const { url, token } = await sandbox.expose(async (request) => {
      for await (const piece of request.body ?? []) length += piece.length;
      return new Response(Buffer.alloc(2 * MB));
    });
    const program = `${prelude}
      const say = (text, then) => { const socket = net.connect(port, "127.0.0.1", () => { if (text) socket.write(text); then(socket); }); socket.on("error", () => {}); };
      for (let n = 0; n < 20; n++) {
        say("", (socket) => setTimeout(() => socket.destroy(), 100));
        say(Buffer.alloc(70_000, 1), () => {});
        say("GET / HTTP/1.1\\r\\n" + "a: b\\r\\n".repeat(20_000), () => {});
        say(head("Content-Length: 100000\\r\\n") + "part", (socket) => socket.end());
        say(head(), (socket) => socket.once("data", () => socket.resetAndDestroy()));
      }
      setTimeout(() => process.exit(), 1500);`;
    await inside(sandbox, program, url, token);
    expect(length).toBeLessThan(MB);
    const after = `fetch(process.argv[1], { headers: { authorization: "Bearer " + process.argv[2] } })
      .then(async (response) => console.log((await response.arrayBuffer()).byteLength))`;
    expect(Number(await inside(sandbox, after, url, token))).toBe(2 * MB);
    expect(failures).toEqual([]);
  });
});
