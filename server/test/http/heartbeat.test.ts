import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { keepAlive, RecordWriter } from "../../src/http/response/records.js";

/** A response whose reader takes everything at once, or nothing. */
class Connection extends EventEmitter {
  readonly written: string[] = [];
  readonly destroyed = false;
  isFull = false;

  write(text: string): boolean {
    this.written.push(text);
    return !this.isFull;
  }
}

function stream() {
  const connection = new Connection();
  // What a writer uses of a response.
  const writer = new RecordWriter(connection as unknown as ServerResponse);
  return { connection, writer };
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
    connection.emit("drain");
    vi.advanceTimersByTime(15_000);
    expect(connection.written).toEqual(["record\n", "\n"]);
  });
});
