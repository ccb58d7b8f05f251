import { once } from "node:events";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip, zstdCompress } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { skipWithout } from "../../../../scripts/vitest/skip-without.ts";
import { SharedBudget } from "../../src/proxy/clients.js";
import { Decoders } from "../../src/proxy/credentials/forward.js";
import { ask, openWorld, type World } from "./brokered.js";

const megabyte = 1_048_576;
const text = Buffer.alloc(16 * megabyte, "what a server says ");
const zstd = (windowLog: number) =>
  promisify(zstdCompress)(text, { params: { [constants.ZSTD_c_windowLog]: windowLog } });

describe("an encoded response", () => {
  let world: World;
  beforeAll(async () => {
    const answers = new Map<string, readonly [coding: string, body: Buffer]>([
      ["/gzip", ["gzip", await promisify(gzip)(text)]],
      [
        "/br",
        ["br", await promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })],
      ],
      ["/zstd", ["zstd", await zstd(23)]],
      ["/zstd-large", ["zstd", await zstd(24)]],
    ]);
    world = await openWorld({
      listener: ({ url = "" }, response) => {
        const [coding, body] = answers.get(url) ?? ["constructor", Buffer.from("x")];
        response.writeHead(200, { "content-encoding": coding }).end(body);
      },
    });
  });
  afterAll(() => world.close());

  it.each(["/gzip", "/br", "/zstd"])("arrives decoded: %s", async (path) => {
    const { status, body } = await ask(world, path);
    expect(status).toBe(200);
    expect(body.length).toBe(text.length);
  });

  it("is cut if it requests a larger window than HTTP allows", async () => {
    await expect(ask(world, "/zstd-large")).rejects.toThrow("aborted");
  });

  it("in a coding that isn't one is refused", async () => {
    expect(await ask(world, "/other")).toMatchObject({ status: 502 });
  });
});

describe("decoders", () => {
  it("of all sessions share a budget, and come back when they are closed", async () => {
    const budget = new SharedBudget(40);
    const one = new Decoders(budget);
    const [first, second] = [one.open("br"), one.open("br")];
    expect(one.open("gzip")).toBe("busy");
    if (typeof first === "string" || typeof second === "string") throw new Error("it was refused");
    const other = new Decoders(budget);
    const third = other.open("zstd");
    if (typeof third === "string") throw new Error("another session used up this one's part");
    expect(other.open("br")).toBe("busy");
    for (const decoder of [first, second, third]) {
      decoder.destroy();
      await once(decoder, "close");
    }
    expect(budget.taken).toBe(0);
  });

  it("that are busy are named in the answer, which asks to try again", async () => {
    skipWithout("openssl");
    const body = await promisify(gzip)("x");
    const world = await openWorld({
      listener: (_request, response) => {
        // Never ends: each holds its decoder.
        response.writeHead(200, { "content-encoding": "br" }).write(body.subarray(0, 0));
        response.flushHeaders();
      },
    });
    const waiting = Array.from({ length: 16 }, () => ask(world, "/").catch(() => undefined));
    const busy = await Promise.race(waiting);
    expect(busy).toMatchObject({ status: 503, body: expect.stringContaining("try again later") });
    await world.close();
    await Promise.all(waiting);
  });
});
