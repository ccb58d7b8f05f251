import { expect, it } from "vitest";
import { probeResponse, readProbeRequest } from "../../../src/http/health/answers.js";

it.each([
  ["GET /health HTTP/1.1\r\nHost: a:8766", "GET", "/health", { host: "a:8766" }],
  ["HEAD /ready?x=/health HTTP/1.0", "HEAD", "/ready", {}],
  ["GET /a HTTP/1.1\r\nHost:a\r\nORIGIN: \t http://b \t", "GET", "/a", { host: "a", origin: "http://b" }],
  ["GET /a HTTP/1.1\r\nhost: a\r\nHost: b\r\nx-empty:", "GET", "/a", { host: "b", "x-empty": "" }],
  ["GET /a HTTP/1.1\r\nx: a  b \t c\r\ny: \t ", "GET", "/a", { x: "a  b \t c", y: "" }],
  ["GET /a HTTP/1.1\r\n__proto__: x", "GET", "/a", { ["__proto__"]: "x" }],
])("reads %j", (header, method, path, headers) => {
  const read = readProbeRequest(header);
  expect(read).toMatchObject({ method, path });
  expect(Object.entries(read?.headers ?? {})).toEqual(Object.entries(headers));
});

it.each([
  "",
  "GET /health",
  "GET health HTTP/1.1",
  "get /health HTTP/1.1",
  "GET /health HTTP/2",
  "GET  /health HTTP/1.1",
  "GET /hea\u00e4lth HTTP/1.1",
  "GET /health HTTP/1.1\r\nno colon",
  "GET /health HTTP/1.1\r\n folded: x",
  "GET /health HTTP/1.1\r\nhost : x",
  "\u0016\u0003\u0001 a TLS client's hello",
])("refuses %j", (header) => {
  expect(readProbeRequest(header)).toBeUndefined();
});

it("reads a header of spaces in about the time of any other", () => {
  const timeOf = (value: string) => {
    const header = `GET /health HTTP/1.1\r\nx: a${value}b`;
    const times = Array.from({ length: 20 }, () => {
      const startedAt = performance.now();
      readProbeRequest(header);
      return performance.now() - startedAt;
    });
    return Math.min(...times);
  };
  const letters = timeOf("x".repeat(4_000));
  // The square of its length would be a thousand times that.
  expect(timeOf(" ".repeat(4_000)) / letters).toBeLessThan(100);
  expect(timeOf(" x".repeat(2_000)) / letters).toBeLessThan(100);
});

it("a response tells its length, and HEAD gets no body", () => {
  const [header, body] = probeResponse(200, { a: "ä" }).split("\r\n\r\n");
  expect(header).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(header).toContain("content-length: 10");
  expect(header).toContain("connection: close");
  expect(body).toBe('{"a":"ä"}');
  const refused = probeResponse(503, { a: 1 }, { "retry-after": "1" }, true);
  expect(refused).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/);
  expect(refused).toMatch(/\r\nretry-after: 1\r\n\r\n$/);
});
