import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, it } from "vitest";
import { cookieName, headersInside, headersOutside } from "../../src/preview/forward.js";
import { tokenHeadersOf } from "../../src/tenants/caller.js";

const common = {
  port: 5_173,
  tokenHeaders: tokenHeadersOf([
    {
      name: "other",
      keys: {},
      tokenHeaders: ["x-other-token"],
      translate: (request) => ({ request, issues: [] }),
    },
  ]),
  frameAncestors: ["https://app.example.com"],
};
const preview = { ...common, origin: "http://a1.localhost:8767" };
const secure = { ...common, origin: "https://a1.preview.example.com" };
/** What a sibling's pages can't do. */
const framing = "frame-ancestors 'self' https://app.example.com";

/** What the program inside gets in any case. */
const addressed = {
  host: "localhost:5173",
  "x-forwarded-host": "a1.localhost:8767",
  "x-forwarded-proto": "http",
};
/** What the caller gets in any case. */
const shown = {
  "cache-control": "private",
  "referrer-policy": "same-origin",
  "content-security-policy": framing,
  "origin-agent-cluster": "?1",
  "x-robots-tag": "noindex",
};

type Row = readonly [what: string, given: IncomingHttpHeaders, passed: Readonly<Record<string, unknown>>];

const inward: readonly Row[] = [
  ["nothing but where it is addressed", {}, {}],
  [
    "headers of the page's own",
    {
      accept: "text/html",
      "x-csrf-token": "1",
      "content-type": "text/plain",
      "sec-fetch-site": "same-origin",
    },
    {
      accept: "text/html",
      "x-csrf-token": "1",
      "content-type": "text/plain",
      "sec-fetch-site": "same-origin",
    },
  ],
  ["no Authorization", { authorization: "Bearer of-the-api" }, {}],
  ["no token of the API in any header", { "x-ambit-token": "of-the-api", "x-other-token": "of-the-api" }, {}],
  ["no Authorization of a proxy", { "proxy-authorization": "Basic x" }, {}],
  ["the program's cookies", { cookie: "theirs=1; other=2" }, { cookie: "theirs=1; other=2" }],
  ["no cookie of the ticket", { cookie: "ambit-preview=t" }, {}],
  ["the program's cookies beside it", { cookie: "a=1; ambit-preview=t; b=2" }, { cookie: "a=1; b=2" }],
  [
    "none of its other spellings",
    { cookie: "Ambit-Preview=t;  __Host-ambit-preview=t; __HOST-AMBIT-PREVIEW=t" },
    {},
  ],
  [
    "a cookie whose name is longer",
    { cookie: "ambit-preview-of-mine=1" },
    { cookie: "ambit-preview-of-mine=1" },
  ],
  [
    "its own origin, as the program knows it",
    { origin: preview.origin },
    { origin: "http://localhost:5173" },
  ],
  ["another origin as it is", { origin: "https://other.example" }, { origin: "https://other.example" }],
  [
    "its own referrer, as the program knows it",
    { referer: `${preview.origin}/page?a=1` },
    { referer: "http://localhost:5173/page?a=1" },
  ],
  ["no referrer of another origin", { referer: "https://other.example/page" }, {}],
  ["no referrer of an origin that begins alike", { referer: "http://a1.localhost:87670/page" }, {}],
  ["no referrer with the ticket", { referer: `${preview.origin}/?ambit-preview=t` }, {}],
  [
    "nothing that proxies say of the caller",
    {
      forwarded: "for=10.0.0.1",
      via: "1.1 proxy",
      "x-forwarded-for": "10.0.0.1",
      "x-forwarded-host": "api.example",
      "x-forwarded-port": "443",
      "x-forwarded-proto": "https",
      "x-forwarded-server": "proxy",
      "x-forwarded-ssl": "on",
      "x-real-ip": "10.0.0.1",
    },
    {},
  ],
  ["another host neither", { host: "elsewhere.example" }, {}],
  [
    "nothing hop by hop",
    {
      connection: "keep-alive",
      "keep-alive": "timeout=5",
      "proxy-connection": "keep-alive",
      te: "trailers",
      trailer: "x-end",
      "transfer-encoding": "chunked",
      upgrade: "h2c",
      expect: "100-continue",
    },
    {},
  ],
  [
    "nothing that Connection names",
    { connection: "close, X-Hop", "x-hop": "1", "x-kept": "2" },
    { "x-kept": "2" },
  ],
];

const outward: readonly Row[] = [
  ["nothing but what keeps it apart", {}, {}],
  [
    "headers of the page's own",
    { "content-type": "text/html", etag: '"1"', "content-security-policy": "default-src 'self'" },
    {
      "content-type": "text/html",
      etag: '"1"',
      "content-security-policy": `default-src 'self', ${framing}`,
    },
  ],
  [
    "its cookies for this host only",
    {
      "set-cookie": [
        "a=1; Path=/; Domain=localhost",
        "b=2;DOMAIN = .example.com; HttpOnly",
        "c=3; domain; Secure",
      ],
    },
    { "set-cookie": ["a=1; Path=/", "b=2; HttpOnly", "c=3; Secure"] },
  ],
  ["a cookie with the word in its value", { "set-cookie": ["a=domain=x"] }, { "set-cookie": ["a=domain=x"] }],
  [
    "no cookie of the ticket's name",
    { "set-cookie": ["ambit-preview=x", "__Host-ambit-preview=x; Secure", " AMBIT-PREVIEW =x"] },
    {},
  ],
  [
    "nothing that holds beyond its origin or its session",
    {
      "strict-transport-security": "max-age=99; includeSubDomains",
      "clear-site-data": '"cookies"',
      "service-worker-allowed": "/",
      "alt-svc": 'h3=":443"',
      "public-key-pins": "x",
      "public-key-pins-report-only": "x",
      "expect-ct": "x",
      nel: "{}",
      "report-to": "{}",
      "reporting-endpoints": "x",
    },
    {},
  ],
  [
    "none of its policies that would show the preview's name",
    { "referrer-policy": "unsafe-url", "origin-agent-cluster": "?0" },
    {},
  ],
  [
    "a lifetime in the caller's own cache",
    { "cache-control": "public, max-age=60, s-maxage=600" },
    { "cache-control": "private, max-age=60" },
  ],
  ["no-store", { "cache-control": "no-store" }, { "cache-control": "private, no-store" }],
  [
    "its own address as a path",
    { location: "http://localhost:5173/here?a=1#b" },
    { location: "/here?a=1#b" },
  ],
  ["the same of another spelling", { location: "HTTP://127.0.0.1:5173" }, { location: "/" }],
  ["the same of IPv6", { location: "http://[::1]:5173/here" }, { location: "/here" }],
  [
    "no host behind its own",
    { location: "http://localhost:5173//evil.example" },
    { location: "/evil.example" },
  ],
  ["another port as it is", { location: "http://localhost:51730/" }, { location: "http://localhost:51730/" }],
  ["another host as it is", { location: "https://other.example/" }, { location: "https://other.example/" }],
  ["a path as it is", { location: "/here" }, { location: "/here" }],
  [
    "nothing hop by hop, nor what Connection names",
    { connection: "close, x-hop", "x-hop": "1", "transfer-encoding": "chunked", "keep-alive": "timeout=5" },
    {},
  ],
];

describe("the program inside gets", () => {
  it.each(inward)("%s", (_what, given, passed) => {
    expect(headersInside(given, preview)).toEqual({ ...addressed, ...passed });
  });

  it("the scheme of its preview", () => {
    expect(headersInside({}, secure)).toMatchObject({
      "x-forwarded-host": "a1.preview.example.com",
      "x-forwarded-proto": "https",
    });
  });
});

describe("the caller gets", () => {
  it.each(outward)("%s", (_what, given, passed) => {
    expect(headersOutside(given, preview)).toEqual({ ...shown, ...passed });
  });
});

it("the cookie of HTTPS is one that no other host can set", () => {
  expect(cookieName(preview)).toBe("ambit-preview");
  expect(cookieName(secure)).toBe("__Host-ambit-preview");
});
