import { createSecretKey, randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, it } from "vitest";
import { admitCaller, makeTicket } from "../../src/preview/admit.js";

const key = createSecretKey(randomBytes(32));
const preview = {
  label: "a1",
  port: 5_173,
  origin: "http://a1.localhost:8767",
  tokenHeaders: [],
  frameAncestors: [],
};
const sibling = "http://b2.localhost:8767";
const secure = { ...preview, origin: "https://a1.preview.example.com" };
const now = 1_000_000;
const expiresAt = now + 60_500;
const ticket = makeTicket(key, preview, expiresAt);
const ended = makeTicket(key, preview, now);
const cookie = `ambit-preview=${ticket}`;
const upgrade = "websocket";

interface Asked {
  readonly method?: string;
  readonly url?: string;
  readonly headers?: IncomingHttpHeaders;
}

const kindOf = ({ method = "GET", url = "/page?b=2", headers = {} }: Asked, to = preview) =>
  admitCaller({ method, url, headers }, to, key, now).kind;

/** Of a caller whose ticket is the only thing that may be wrong with it. */
const byUrl = (given: string, more: Asked = {}) => ({ url: `/page?ambit-preview=${given}`, ...more });
const byCookie = (headers: IncomingHttpHeaders, method = "GET") => ({
  method,
  headers: { cookie, ...headers },
});

describe("a caller with a ticket in its URL", () => {
  it("is sent to the same address without it, with the ticket in a cookie that ends with it", () => {
    const request = { method: "GET", url: `//evil.example/?a=1&ambit-preview=${ticket}&b=2`, headers: {} };
    expect(admitCaller(request, preview, key, now)).toEqual({
      kind: "redirect",
      location: `${preview.origin}//evil.example/?a=1&b=2`,
      cookie: `ambit-preview=${ticket}; Path=/; Max-Age=61; HttpOnly; SameSite=Lax`,
    });
    expect(admitCaller({ ...request, url: byUrl(ticket).url }, secure, key, now)).toMatchObject({
      location: `${secure.origin}/page`,
      cookie: `__Host-ambit-preview=${ticket}; Path=/; Max-Age=61; HttpOnly; SameSite=Lax; Secure`,
    });
  });

  it.each<[what: string, asked: Asked]>([
    ["POST", byUrl(ticket, { method: "POST" })],
    ["a WebSocket", byUrl(ticket, { headers: { upgrade } })],
    [
      "a page of another origin that has the URL",
      byUrl(ticket, { method: "POST", headers: { origin: sibling } }),
    ],
  ])("is admitted at once by %s, which gets the path without it", (_what, { method, url, headers = {} }) => {
    expect(admitCaller({ method, url, headers }, preview, key, now)).toEqual({
      kind: "admitted",
      path: "/page",
      expiresAt,
    });
  });

  it.each<[what: string, given: string]>([
    ["that has ended", ended],
    ["of another session", makeTicket(key, { ...preview, label: "b2" }, expiresAt)],
    ["of another port", makeTicket(key, { ...preview, port: 5_174 }, expiresAt)],
    ["that was signed by another server", makeTicket(createSecretKey(randomBytes(32)), preview, expiresAt)],
    ["whose signature was changed", `${ticket.slice(0, -2)}${ticket.endsWith("AA") ? "BB" : "AA"}`],
    ["that is empty", ""],
  ])("isn't admitted by one %s, whichever way it comes", (_what, given) => {
    expect(kindOf(byUrl(given))).toBe("refused");
    expect(kindOf(byUrl(given, { method: "POST" }))).toBe("refused");
    expect(kindOf({ headers: { cookie: `ambit-preview=${given}` } })).toBe("refused");
    // A wrong one in the URL isn't made good by a cookie.
    expect(kindOf(byUrl(given, { headers: { cookie } }))).toBe("refused");
  });
});

describe("a caller with the cookie", () => {
  it.each<[what: string, asked: Asked]>([
    ["without a word of where it comes from", byCookie({})],
    ["an address that was typed", byCookie({ "sec-fetch-site": "none", "sec-fetch-mode": "navigate" })],
    ["a page of the preview", byCookie({ "sec-fetch-site": "same-origin", origin: preview.origin }, "POST")],
    ["a link of a sibling's page", byCookie({ "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate" })],
    ["a link of any page", byCookie({ "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" })],
    ["a WebSocket of the preview's page", byCookie({ upgrade, origin: preview.origin })],
    ["a WebSocket of no page", byCookie({ upgrade })],
    ["an older browser's form on its own page", byCookie({ origin: preview.origin }, "POST")],
  ])("is admitted: %s", (_what, asked) => {
    expect(kindOf(asked)).toBe("admitted");
  });

  // Each has a valid cookie: only where the request comes from refuses it.
  it.each<[what: string, asked: Asked]>([
    ["a fetch of a sibling's page", byCookie({ "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" })],
    [
      "an image of a sibling's page",
      byCookie({ "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" }),
    ],
    ["a fetch of any page", byCookie({ "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" })],
    [
      "a form of another page",
      byCookie({ "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", origin: sibling }, "POST"),
    ],
    ["a WebSocket of a sibling's page", byCookie({ upgrade, origin: sibling })],
    ["a WebSocket of a page without an origin", byCookie({ upgrade, origin: "null" })],
    [
      "a WebSocket that says it is a navigation",
      byCookie({ upgrade, origin: sibling, "sec-fetch-site": "none", "sec-fetch-mode": "navigate" }),
    ],
    ["an older browser's form on another page", byCookie({ origin: sibling }, "POST")],
    ["an origin that begins alike", byCookie({ origin: `${preview.origin}0` }, "POST")],
    ["the same name over HTTPS", byCookie({ origin: "https://a1.localhost:8767" }, "POST")],
  ])("gets nothing by another origin's page: %s", (_what, asked) => {
    expect(admitCaller({ method: "GET", url: "/", headers: {}, ...asked }, preview, key, now)).toEqual({
      kind: "refused",
      reason: "Another origin's page can't use this preview.",
    });
  });

  it.each<[what: string, headers: IncomingHttpHeaders, kind: string]>([
    ["beside others", { cookie: `a=1;${cookie}; b=2` }, "admitted"],
    ["behind one that the page made", { cookie: `ambit-preview=made; ${cookie}` }, "admitted"],
    ["behind more than a few", { cookie: `${"ambit-preview=made; ".repeat(4)}${cookie}` }, "refused"],
    ["by a name that ends alike", { cookie: `not-ambit-preview=${ticket}` }, "refused"],
    ["by the name for HTTPS", { cookie: `__Host-${cookie}` }, "refused"],
    ["none at all", {}, "refused"],
  ])("is known by it: %s", (_what, headers, kind) => {
    expect(kindOf({ headers })).toBe(kind);
  });

  it("on HTTPS only by the one that no other host can set", () => {
    expect(kindOf({ headers: { cookie: `__Host-${cookie}` } }, secure)).toBe("admitted");
    expect(kindOf({ headers: { cookie } }, secure)).toBe("refused");
  });
});
