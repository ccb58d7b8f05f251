import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import {
  judgeFirstFlight,
  maxClientHelloBytes,
  readClientHello,
} from "../../src/proxy/tunnel/first-flight.js";
import { readTarget } from "../../src/target.js";
import { realClientHello } from "./tls.js";

/** Cuts the handshake into records of the given sizes, the last taking the rest. */
function refragment(flight: Buffer, sizes: readonly number[]): Buffer {
  const handshake = flight.subarray(5);
  const records: Buffer[] = [];
  for (let offset = 0, index = 0; offset < handshake.length; index++) {
    const size = Math.min(sizes[index] ?? handshake.length, handshake.length - offset);
    const header = Buffer.from([0x16, 3, 1, 0, 0]);
    header.writeUInt16BE(size, 3);
    records.push(header, handshake.subarray(offset, offset + size));
    offset += size;
  }
  return Buffer.concat(records);
}

/** A minimal ClientHello around the given extensions. */
function hello(extensions: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(extensions.length);
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32),
    Buffer.from([0, 0, 2, 0x13, 1, 1, 0]),
    length,
    extensions,
  ]);
  const message = Buffer.from([1, 0, 0, 0]);
  message.writeUIntBE(body.length, 1, 3);
  return refragment(Buffer.concat([Buffer.alloc(5), message, body]), []);
}

function serverName(...names: (string | Buffer)[]): Buffer {
  const entries = Buffer.concat(
    names.map((name) => {
      const bytes = Buffer.from(name);
      return Buffer.concat([Buffer.from([0, bytes.length >> 8, bytes.length & 255]), bytes]);
    }),
  );
  const list = Buffer.concat([Buffer.from([entries.length >> 8, entries.length & 255]), entries]);
  return Buffer.concat([Buffer.from([0, 0, list.length >> 8, list.length & 255]), list]);
}

describe("readClientHello", () => {
  let real: Buffer;
  beforeAll(async () => {
    real = await realClientHello("ok.test");
  });

  it("reads a real handshake, with and without a name", async () => {
    expect(readClientHello(real)).toEqual({ state: "hello", serverName: "ok.test" });
    expect(readClientHello(await realClientHello(undefined))).toEqual({
      state: "hello",
      serverName: undefined,
    });
    expect(readClientHello(hello(serverName("a.test")))).toEqual({ state: "hello", serverName: "a.test" });
  });

  it("reads it in any fragmentation, and every prefix is incomplete", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 40 }), (sizes) => {
        const flight = refragment(real, sizes);
        expect(readClientHello(flight)).toEqual({ state: "hello", serverName: "ok.test" });
        for (let length = 0; length < flight.length; length++) {
          const reading = readClientHello(flight.subarray(0, length));
          expect(reading.state).toBe("incomplete");
          if (reading.state === "incomplete") expect(reading.needed).toBeGreaterThan(length);
        }
      }),
      { numRuns: 20 },
    );
  });

  it("never throws, for any input", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 400 }),
        fc.nat(),
        fc.nat({ max: 255 }),
        (noise, position, byte) => {
          readClientHello(Buffer.concat([Buffer.from([0x16, 3, 1]), noise]));
          const damaged = Buffer.from(real);
          damaged[position % damaged.length] = byte;
          const reading = readClientHello(damaged);
          expect(["incomplete", "not-tls", "malformed", "hello"]).toContain(reading.state);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it.each([
    ["two server name extensions", hello(Buffer.concat([serverName("ok.test"), serverName("evil.test")]))],
    ["two names in one extension", hello(serverName("ok.test", "evil.test"))],
    ["an empty name", hello(serverName(""))],
    ["a null byte in the name", hello(serverName("ok.test\u0000evil.test"))],
    ["bytes beyond ASCII in the name", hello(serverName(Buffer.from([0xff, 0xfe])))],
    ["an extension past the end", hello(Buffer.from([0, 0, 0, 99, 0]))],
    ["another message first", refragment(Buffer.concat([Buffer.alloc(5), Buffer.from([2, 0, 0, 1, 0])]), [])],
    ["an empty message", refragment(Buffer.concat([Buffer.alloc(5), Buffer.from([1, 0, 0, 0])]), [])],
    ["an empty record", Buffer.from([0x16, 3, 1, 0, 0])],
    ["an oversized record", Buffer.from([0x16, 3, 1, 0x40, 1])],
    ["an unknown version", Buffer.from([0x16, 2, 0, 0, 1])],
    [
      "an endless message",
      refragment(Buffer.concat([Buffer.alloc(5), Buffer.from([1, 0xff, 0xff, 0xff])]), []),
    ],
    ["another record in between", Buffer.from([0x16, 3, 1, 0, 1, 1, 0x15, 3, 1, 0, 2])],
  ])("refuses %s", (_name, bytes) => {
    expect(readClientHello(bytes).state).toBe("malformed");
  });

  it("is bounded: one-byte records don't grow without limit", () => {
    const record = Buffer.from([0x16, 3, 1, 0, 1, 0]);
    const flight = Buffer.concat([
      Buffer.from([0x16, 3, 1, 0, 4, 1, 0, 0x70, 0]),
      ...Array.from({ length: 6000 }, () => record),
    ]);
    expect(flight.length).toBeGreaterThan(maxClientHelloBytes);
    expect(readClientHello(flight).state).toBe("malformed");
  });
});

describe("judgeFirstFlight", () => {
  const to = (host: string, port: number) => {
    const reading = readTarget(host, port);
    if (!reading.ok) throw new Error(reading.why);
    return reading.target;
  };
  const text = (value: string) => Buffer.from(value);
  it.each([
    ["its own name", "ok.test", 443, hello(serverName("ok.test")), "pass"],
    ["its own name in another case", "ok.test", 443, hello(serverName("OK.test.")), "pass"],
    ["another name", "ok.test", 443, hello(serverName("evil.test")), "refuse"],
    ["another name on another port", "ok.test", 8443, hello(serverName("evil.test")), "refuse"],
    ["no name", "ok.test", 443, hello(Buffer.alloc(0)), "refuse"],
    ["no name on another port", "ok.test", 8443, hello(Buffer.alloc(0)), "refuse"],
    ["an address as name", "ok.test", 443, hello(serverName("127.0.0.1")), "refuse"],
    ["any name, to an address", "93.184.216.34", 443, hello(serverName("evil.test")), "pass"],
    ["SSH on 443", "ok.test", 443, text("SSH-2.0-x\r\n"), "refuse"],
    ["HTTP on 443", "ok.test", 443, text("GET / HTTP/1.1\r\n"), "refuse"],
    ["SSH on 22", "ok.test", 22, text("SSH-2.0-x\r\n"), "pass"],
    ["SSH on 80", "ok.test", 80, text("SSH-2.0-x\r\n"), "refuse"],
    ["HTTP on 80", "ok.test", 80, text("GET / HTTP/1.1\r\n"), "http"],
    ["HTTP on 8080", "ok.test", 8080, text("POST /"), "http"],
    ["HTTP after empty lines", "ok.test", 8080, text("\r\n\r\nGET /"), "http"],
    ["half a method", "ok.test", 8080, text("GE"), "wait"],
    ["empty lines", "ok.test", 8080, text("\r\n"), "wait"],
    ["HTTP/2 in the clear", "ok.test", 8080, text("PRI * HTTP/2.0\r\n\r\nSM"), "refuse"],
    ["nothing yet", "ok.test", 8080, text(""), "wait"],
    ["half a handshake", "ok.test", 8443, Buffer.from([0x16, 3]), "wait"],
  ])("%s: %s:%i", (_name, host, port, bytes, verdict) => {
    expect(judgeFirstFlight(to(host, port), bytes, false).verdict).toBe(verdict);
  });

  it("refuses an incomplete handshake, and allows silence", () => {
    expect(judgeFirstFlight(to("ok.test", 8443), Buffer.from([0x16, 3]), true).verdict).toBe("refuse");
    expect(judgeFirstFlight(to("ok.test", 80), text("GE"), true).verdict).toBe("refuse");
    expect(judgeFirstFlight(to("ok.test", 443), text(""), true).verdict).toBe("pass");
  });
});
