import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { keepAlive, RecordWriter } from "../../src/http/response/records.js";

/** A response whose reader takes everything at once, or nothing. */
function stream() {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const connection = {
    written: [] as string[],
    isFull: false,
    drain: () => response.emit("drain"),
  };
  vi.spyOn(response, "write").mockImplementation((text) => {
    connection.written.push(String(text));
    return !connection.isFull;
  });
  return { connection, writer: new RecordWriter(response) };
}

describe("a stream without records", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    return () => vi.useRealTimers();
  });

  it.each([
    ["ndjson", "\n"],
    ["events", ": running\n\n"],
  ] as const)("as %s shows after each 15 s that it is alive", (form, heartbeat) => {
    const { connection, writer } = stream();
    const alive = keepAlive(form, writer);
    vi.advanceTimersByTime(14_999);
    expect(connection.written).toEqual([]);
    vi.advanceTimersByTime(15_001);
    expect(connection.written).toEqual([heartbeat, heartbeat]);
    alive[Symbol.dispose]();
    vi.advanceTimersByTime(60_000);
    expect(connection.written).toHaveLength(2);
  });

  it("counts its silence from its last record", () => {
    const { connection, writer } = stream();
    using _alive = keepAlive("ndjson", writer);
    for (let second = 0; second < 60; second += 10) {
      vi.advanceTimersByTime(10_000);
      void writer.write("record\n");
    }
    expect(connection.written).not.toContain("\n");
    vi.advanceTimersByTime(15_000);
    expect(connection.written.at(-1)).toBe("\n");
  });

  it("adds nothing for a reader that is behind", () => {
    const { connection, writer } = stream();
    using _alive = keepAlive("ndjson", writer);
    connection.isFull = true;
    void writer.write("record\n");
    vi.advanceTimersByTime(60_000);
    expect(connection.written).toEqual(["record\n"]);
    connection.isFull = false;
    connection.drain();
    vi.advanceTimersByTime(15_000);
    expect(connection.written).toEqual(["record\n", "\n"]);
  });
});
