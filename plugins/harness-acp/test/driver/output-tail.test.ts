import { describe, expect, it } from "vitest";
import { OutputTail } from "../../src/driver/connection.js";

async function tailOf(chunks: readonly string[], limit: number): Promise<string> {
  let finished = () => {};
  const read = new Promise<void>((resolve) => {
    finished = resolve;
  });
  const waiting = [...chunks];
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const next = waiting.shift();
        if (next !== undefined) return controller.enqueue(new TextEncoder().encode(next));
        controller.close();
        finished();
      },
    },
    { highWaterMark: 0 },
  );
  const tail = new OutputTail(stream, limit);
  await read;
  return tail.text;
}

describe("the end of an agent's error output", () => {
  it.each([
    ["is all of it if it fits", ["one ", "two"], 100, "one two"],
    ["is its last words", ["one two ", "three four"], 12, "… three four"],
    ["contains no part of a truncated word, such as a secret", [`key=${"s".repeat(50)} end`], 20, "… end"],
    ["is empty for a single endless word", ["s".repeat(200)], 20, "…"],
  ])("holds %s", async (_what, chunks, limit, text) => {
    expect(await tailOf(chunks, limit)).toBe(text);
  });
});
