import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openBridged } from "../support/bridged.js";

const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

describe("a port that leads to a socket inside", () => {
  let folder = "";
  let server: Server;
  const path = () => join(folder, "echo.sock");
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "ambit-forward-"));
    // Answers once the client has ended.
    server = createServer({ allowHalfOpen: true }, async (socket) => {
      const pieces: Buffer[] = [];
      for await (const piece of socket) pieces.push(piece);
      socket.end(Buffer.concat(pieces));
    });
    await once(server.listen(path()), "listening");
  });
  afterEach(async () => {
    server.close();
    await rm(folder, { recursive: true, force: true });
  });
  const through = async (port: number, bytes: Buffer) => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.end(bytes);
    const pieces: Buffer[] = [];
    for await (const piece of socket) pieces.push(piece);
    return Buffer.concat(pieces);
  };

  it("carries many connections whole, each direction with its own end, and none by the runner", async () => {
    await using bridged = await openBridged();
    const port = await bridged.sandbox.forward(path());
    const sent = Array.from({ length: 20 }, () => randomBytes(1_000_000));
    const received = await Promise.all(sent.map((bytes) => through(port, bytes)));
    expect(received.map(digest)).toEqual(sent.map(digest));
    // Exposures have another.
    const { url } = await bridged.sandbox.expose(() => new Response("here"));
    expect(new URL(url).port).not.toBe(`${port}`);
  });

  it("closes connections where nothing listens, and serves the next", async () => {
    await using bridged = await openBridged();
    const port = await bridged.sandbox.forward(path());
    server.close();
    await rm(path(), { force: true });
    expect(await through(port, Buffer.from("x")).catch(() => "closed")).toEqual(
      expect.toSatisfy((got: unknown) => got === "closed" || Buffer.isBuffer(got)),
    );
    server = createServer((socket) => socket.end("back"));
    await once(server.listen(path()), "listening");
    expect((await through(port, Buffer.from("x"))).toString()).toBe("back");
  });

  it("is closed with the sandbox", async () => {
    const bridged = await openBridged();
    const port = await bridged.sandbox.forward(path());
    await bridged[Symbol.asyncDispose]();
    await expect(through(port, Buffer.from("x"))).rejects.toThrow(/ECONNREFUSED/);
  });
});
