import { describe, expect, test } from "vitest";
import { lineOf } from "../../src/expose/switchboard.js";

describe("a connection's first bytes say where it belongs", () => {
  test.each([
    ["GET / HTTP/1.1", "exposed"],
    ["POST /mcp HTTP/1.1", "exposed"],
    ["GET /http://a.test/ HTTP/1.1", "exposed"],
    ["GET http://a.test/ HTTP/1.1", "proxy"],
    ["CONNECT a.test:443 HTTP/1.1", "proxy"],
    ["OPTIONS * HTTP/1.1", "proxy"],
    ["\u0005\u0001\u0000", "proxy"],
    ["\u0004\u0001", "proxy"],
    ["\u0016\u0003\u0001", "proxy"],
    ["get / HTTP/1.1", "proxy"],
    ["GARBAGE!", "proxy"],
    ["A".repeat(40), "proxy"],
    ["", undefined],
    ["PO", undefined],
    ["POST", undefined],
    ["POST ", undefined],
  ])("%j: %s", (beginning, line) => {
    expect(lineOf(Buffer.from(beginning, "latin1"))).toBe(line);
  });
});
