import { describe, expect, it } from "vitest";
import { recordsOf } from "../src/records.js";

const event = { kind: "event", event: { type: "message", text: "Grüße, 世界" } };
const result = { kind: "result", result: { ok: true, runId: "r", output: "", events: [] } };
const bytes = new TextEncoder().encode(`\n${JSON.stringify(event)}\n\n\n${JSON.stringify(result)}\n`);

function streamOf(pieces: readonly Uint8Array[], end: "close" | "hang" | "fail" = "close") {
  const waiting = [...pieces];
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = waiting.shift();
      if (piece !== undefined) controller.enqueue(piece);
      else if (end === "close") controller.close();
      else if (end === "fail") controller.error(new TypeError("terminated"));
      else return new Promise(() => undefined);
      return undefined;
    },
  });
}

async function read(stream: ReadableStream<Uint8Array>, silenceMs = 1_000) {
  const records: unknown[] = [];
  for await (const record of recordsOf(stream, silenceMs)) records.push(record);
  return records;
}

describe("the records of a stream", () => {
  it.each(Array.from(bytes, (_byte, at) => at))("are the same when it is split at byte %i", async (at) => {
    expect(await read(streamOf([bytes.slice(0, at), bytes.slice(at)]))).toEqual([event, result]);
  });

  it("are the same when each byte arrives alone", async () => {
    expect(await read(streamOf(Array.from(bytes, (byte) => Uint8Array.of(byte))))).toEqual([event, result]);
  });

  it("don't include one that was cut off", async () => {
    expect(await read(streamOf([bytes.slice(0, -10)]))).toEqual([event]);
  });

  it.each([
    ["fails", "fail", "the stream was cut"],
    ["is silent", "hang", "the stream was silent for 20 ms"],
  ] as const)("end with a cut where it %s", async (_what, end, message) => {
    await expect(read(streamOf([bytes], end), 20)).rejects.toMatchObject({ name: "StreamCut", message });
  });

  it.each(["<html>", '{"kind":"other"}', "1"])("are refused where a line is %s", async (line) => {
    const stream = streamOf([new TextEncoder().encode(`${line}\n`)]);
    await expect(read(stream)).rejects.toMatchObject({ code: "invalid_response", retryable: false });
  });
});
