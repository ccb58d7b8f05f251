import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { Demultiplexer, InputQueue, openLogStream } from "../../src/pipe.js";

const out = "\u0001\u0001\u0001";
const err = "\u0002\u0002\u0002";

describe("a demultiplexed log", () => {
  const line = fc.record({
    marker: fc.constantFrom(out, err),
    // What the bridge sends, and control characters that aren't markers.
    text: fc
      .array(fc.constantFrom("a", "{", "é", " ", "b\u0001b", "b\u0002\u0002b"))
      .map((parts) => parts.join("")),
  });

  it("is the same for any chunking", () => {
    fc.assert(
      fc.property(fc.array(line), fc.infiniteStream(fc.integer({ min: 1, max: 9 })), (lines, cuts) => {
        const log = Buffer.from(lines.map(({ marker, text }) => `${marker}${text}\n`).join(""));
        const wanted = (marker: string) =>
          lines
            .filter((each) => each.marker === marker)
            .map(({ text }) => `${text}\n`)
            .join("");
        const taken = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
        const demultiplexer = new Demultiplexer();
        for (let start = 0; start < log.length; ) {
          const end = start + (cuts.next().value ?? 1);
          for (const { stream, bytes } of demultiplexer.feed(log.subarray(start, end)))
            taken[stream].push(bytes);
          start = end;
        }
        for (const { stream, bytes } of demultiplexer.end()) taken[stream].push(bytes);
        expect(Buffer.concat(taken.stdout).toString()).toBe(wanted(out));
        expect(Buffer.concat(taken.stderr).toString()).toBe(wanted(err));
      }),
    );
  });

  it("drops bytes before the first marker", () => {
    const pieces = [...new Demultiplexer().feed(Buffer.from(`lost${out}kept\n`))];
    expect(pieces.map(({ bytes }) => bytes.toString())).toEqual(["kept\n"]);
  });
});

describe("following a log", () => {
  const serve = async (connected: (socket: WebSocket, authorization: string | undefined) => void) => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    server.on("connection", (socket, request) => connected(socket, request.headers.authorization));
    await once(server, "listening");
    onTestFinished(() => {
      for (const client of server.clients) client.terminate();
      server.close();
    });
    const address = server.address();
    if (typeof address !== "object" || address === null) throw new Error("no address");
    const errors: string[] = [];
    const open = () =>
      openLogStream({
        url: `http://127.0.0.1:${address.port}/logs?follow=true`,
        apiKey: "the-key",
        connectMs: 2_000,
        onStderr: (text) => errors.push(text),
      });
    return { open, errors, server };
  };

  it("handles frames of a megabyte, which break the SDK's client", async () => {
    const text = "x".repeat(1_000_000);
    const { open, errors } = await serve((socket, authorization) => {
      socket.send(`${out}${authorization}\n${out}${text}\n${err}aside\n`);
      socket.close();
    });
    expect(await new Response(open().stdout).text()).toBe(`Bearer the-key\n${text}\n`);
    expect(errors.join("")).toBe("aside\n");
  });

  // Without both, v0.190's daemon takes the markers out (apps/daemon/pkg/session/common.go).
  it("requests the streams' markers, like the installed SDK", async () => {
    const { open, server } = await serve((socket) => socket.close());
    const asked = once(server, "connection");
    await new Response(open().stdout).text();
    const [, request] = await asked;
    const installed = createRequire(import.meta.url).resolve("@daytona/sdk");
    const manifest = JSON.parse(
      await readFile(join(installed.replace(/\/(cjs|esm|src|dist)\/.*$/, ""), "package.json"), "utf8"),
    );
    expect(request.headers["x-daytona-split-output"]).toBe("true");
    expect(request.headers["x-daytona-sdk-version"]).toBe(manifest.version);
  });

  it("ends when the connection breaks", async () => {
    const { open } = await serve((socket) =>
      socket.send(`${out}one\n`, () => setTimeout(() => socket.terminate(), 20)),
    );
    expect(await new Response(open().stdout).text()).toBe("one\n");
  });

  it("fails if it is refused", async () => {
    const { open, server } = await serve(() => undefined);
    server.options.verifyClient = (_info: unknown, answer: (ok: boolean, code: number) => void) =>
      answer(false, 410);
    await expect(new Response(open().stdout).text()).rejects.toThrow(/410/);
  });

  it("applies backpressure for a slow reader", async () => {
    let sent = 0;
    const frame = `${out}${"y".repeat(65_536)}\n`;
    const { open } = await serve((socket) => {
      const next = () => {
        if (sent === 1_000) return socket.close();
        sent += 1;
        socket.send(frame, next);
      };
      next();
    });
    const stream = open();
    await after(300);
    // Kept here and on the way: some megabytes of the sixty-five.
    expect(sent).toBeLessThan(500);
    let read = 0;
    for await (const bytes of stream.stdout) read += bytes.length;
    expect(read).toBe(1_000 * 65_537);
  });

  it("can be closed by its reader", async () => {
    const { open, server } = await serve((socket) => socket.send(`${out}one\n`));
    const stream = open();
    const reader = stream.stdout.getReader();
    await reader.read();
    stream.close();
    stream.close();
    expect((await reader.read()).done).toBe(true);
    await expect.poll(() => server.clients.size).toBe(0);
  });
});

describe("input", () => {
  it("is sent in order, one request at a time, and never doubles its last line feed", async () => {
    const requests: string[] = [];
    let under = 0;
    const queue = new InputQueue(async (text) => {
      under += 1;
      expect(under).toBe(1);
      await after(1);
      requests.push(text);
      under -= 1;
    });
    const lines = Array.from({ length: 200 }, (_, index) => `line ${index}\n`);
    await Promise.all(lines.map((line) => queue.write(line)));
    // The platform adds one to each request.
    expect(requests.map((text) => `${text}\n`).join("")).toBe(lines.join(""));
    expect(requests.length).toBeLessThan(10);
  });

  it("limits a request's size, and sends a larger line alone", async () => {
    const sizes: number[] = [];
    const queue = new InputQueue(async (text) => {
      await after(1);
      sizes.push(text.length);
    });
    await Promise.all(Array.from({ length: 100 }, () => queue.write(`${"z".repeat(15_999)}\n`)));
    await queue.write(`${"z".repeat(300_000)}\n`);
    expect(Math.max(...sizes.slice(0, -1))).toBeLessThanOrEqual(128 * 1_024);
    expect(sizes.at(-1)).toBe(300_000);
  });

  it("sends nothing after a failure: it would overtake what was lost", async () => {
    const requests: string[] = [];
    const queue = new InputQueue(async (text) => {
      requests.push(text);
      await after(1);
      if (requests.length === 2) throw new Error("lost");
    });
    const writes = await Promise.allSettled(["a\n", "b\n", "c\n"].map((line) => queue.write(line)));
    expect(writes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    await expect(queue.write("d\n")).rejects.toThrow("lost");
    expect(requests).toEqual(["a", "b\nc"]);
  });
});
