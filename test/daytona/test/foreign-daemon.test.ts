import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { output, useLoopback } from "./loopback.js";

/** Instead of Daytona's program: returns the request, runs a command, sends a greeting over a WebSocket. */
const program = `#!/usr/bin/env node
const { createHash } = require("node:crypto");
const { execFileSync } = require("node:child_process");
const server = require("node:http").createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const { method, url, headers } = request;
  const json = url === "/process/execute"
    ? { exitCode: 0, result: execFileSync("/bin/sh", ["-c", JSON.parse(body).command]).toString() }
    : url === "/version"
    ? { version: "v7.8.9" }
    : { method, url, mark: headers["x-mark"], type: headers["content-type"], body: body.toString() };
  response.writeHead(200, { "content-type": "application/json", "x-said-by": "another daemon" });
  response.end(JSON.stringify(json));
});
server.on("upgrade", (request, socket) => {
  const accept = createHash("sha1")
    .update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: "
    + accept + "\\r\\n\\r\\n");
  const text = Buffer.from(request.url + " " + request.headers["x-mark"]);
  socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]));
});
setTimeout(() => server.listen(2280, "::"), 200);
`;

describe("a daemon that replaces the loopback's own", () => {
  const folder = mkdtempSync(join(tmpdir(), "ambit-daemon-"));
  const daemon = join(folder, "daemon");
  writeFileSync(daemon, program, { mode: 0o755 });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const fixture = useLoopback({ daemon });

  it("gets requests and WebSockets unchanged", async () => {
    const { daytona, loopback } = fixture();
    const sandbox = await daytona.create({ snapshot: "ambit" });
    expect(await output(sandbox, "echo $DAYTONA_SANDBOX_ID")).toBe(sandbox.id);
    expect(sandbox.daemonVersion).toBe("v7.8.9");
    // As in a container, it is the first process, to which those that lose their parent belong.
    expect(await output(sandbox, "echo $PPID")).toBe("1");

    const url = `${sandbox.toolboxProxyUrl}/${sandbox.id}/files/bulk-upload?a=b%20c`;
    const headers = { authorization: `Bearer ${loopback.apiKey}`, "x-mark": "1" };
    const form = new FormData();
    form.set("files[0].path", "w/a.txt");
    const answer = await fetch(url, { method: "POST", headers, body: form });
    expect(answer.headers.get("x-said-by")).toBe("another daemon");
    expect(await answer.json()).toMatchObject({
      method: "POST",
      url: "/files/bulk-upload?a=b%20c",
      mark: "1",
      type: expect.stringMatching(/^multipart\/form-data; boundary=/),
      body: expect.stringContaining('name="files[0].path"'),
    });
    expect((await fetch(url, { method: "POST" })).status).toBe(401);

    const socket = new WebSocket(url.replace(/^http/, "ws"), { headers });
    const [greeting] = await once(socket, "message");
    expect(String(greeting)).toBe("/files/bulk-upload?a=b%20c 1");
    const closed = once(socket, "close");
    expect(loopback.faults.cutLogStreams()).toBe(1);
    await closed;
    await sandbox.delete();
  });
});
