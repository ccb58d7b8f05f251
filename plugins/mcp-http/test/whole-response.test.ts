import { describe, expect, it } from "vitest";
import { wholeIfSoon } from "../src/endpoint.js";

const longMs = 60_000;
const headers = { "content-type": "text/event-stream", "x-other": "kept" };

/** A response whose pieces the test sends. */
function sent(status = 200) {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const left = Promise.withResolvers<unknown>();
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
    },
    cancel: (reason) => left.resolve(reason),
  });
  return {
    response: new Response(body, { status, headers }),
    send: (text: string) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
    fail: (error: Error) => controller?.error(error),
    left: left.promise,
  };
}

/** How many pieces a response has, and their text. */
async function piecesOf({ body }: Response): Promise<string[]> {
  const pieces: string[] = [];
  for await (const piece of body ?? []) pieces.push(Buffer.from(piece).toString());
  return pieces;
}

describe("a response that is complete soon", () => {
  it("is one piece, with its status and headers", async () => {
    const { response, send, end } = sent(201);
    const whole = wholeIfSoon(response, longMs);
    send("data: é");
    setImmediate(() => {
      send("\n\n");
      end();
    });
    const { status, headers } = await whole;
    expect([status, headers.get("content-type"), headers.get("x-other")]).toEqual([
      201,
      "text/event-stream",
      "kept",
    ]);
    expect(await piecesOf(await whole)).toEqual(["data: é\n\n"]);
  });

  it("may be empty, as that of a cancelled call", async () => {
    const { response, end } = sent();
    end();
    expect(await (await wholeIfSoon(response, longMs)).text()).toBe("");
  });

  it("stays as it is without a body", async () => {
    const response = new Response(null, { status: 202 });
    expect(await wholeIfSoon(response, longMs)).toBe(response);
  });

  it("fails as its stream does", async () => {
    const { response, fail } = sent();
    fail(new Error("torn"));
    await expect(wholeIfSoon(response, longMs)).rejects.toThrow("torn");
  });
});

describe("a response that isn't", () => {
  it("begins nevertheless, and continues as a stream", async () => {
    const { response, send, end } = sent();
    send("data: 1\n\n");
    const begun = await wholeIfSoon(response, 0);
    send("data: 2\n\n");
    const pieces = piecesOf(begun);
    send("data: 3\n\n");
    end();
    expect((await pieces).join("")).toBe("data: 1\n\ndata: 2\n\ndata: 3\n\n");
    expect(begun.headers.get("x-other")).toBe("kept");
  });

  it("tells its source when the agent leaves", async () => {
    const { response, left } = sent();
    const begun = await wholeIfSoon(response, 0);
    await begun.body?.cancel("gone");
    expect(await left).toBe("gone");
  });

  it("fails as its stream does", async () => {
    const { response, fail } = sent();
    const begun = await wholeIfSoon(response, 0);
    fail(new Error("torn"));
    await expect(begun.text()).rejects.toThrow("torn");
  });
});
