import { createSecretKey, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { makeTicket, readTicket } from "../../src/preview/admit.js";

const key = createSecretKey(randomBytes(32));
const scope = { label: "a".repeat(32), port: 5_173 };
const expiresAt = 2_000_000;
const ticket = makeTicket(key, scope, expiresAt);
const [expires = "", signature = ""] = ticket.split(".");

/** The same with another character in one place. */
const changed = (text: string, at: number) =>
  text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1);

describe("a ticket", () => {
  it("is read until it ends", () => {
    expect(readTicket(key, scope, ticket, 0)).toBe(expiresAt);
    expect(readTicket(key, scope, ticket, expiresAt - 1)).toBe(expiresAt);
  });

  it.each<[what: string, ticket: string, now: number, scope: typeof scope, key: typeof key]>([
    ["when it has ended", ticket, expiresAt, scope, key],
    ["of another session", ticket, 0, { ...scope, label: "b".repeat(32) }, key],
    ["of another port", ticket, 0, { ...scope, port: 5_174 }, key],
    ["of another server's key", ticket, 0, scope, createSecretKey(randomBytes(32))],
    ["that lasts longer than it was made for", `z${expires}.${signature}`, 0, scope, key],
    ["whose signature was changed at its beginning", `${expires}.${changed(signature, 0)}`, 0, scope, key],
    ["whose signature was changed inside", `${expires}.${changed(signature, 20)}`, 0, scope, key],
    ["with a shorter signature", ticket.slice(0, -1), 0, scope, key],
    ["with more behind it", `${ticket}A`, 0, scope, key],
    ["without a signature", `${expires}.`, 0, scope, key],
    ["without an end", `.${signature}`, 0, scope, key],
    ["that is empty", "", 0, scope, key],
    ["with a line break", `${ticket}\n`, 0, scope, key],
    ["in capital letters", `${expires.toUpperCase()}.${signature}`, 0, scope, key],
  ])("isn't one %s", (_what, given, now, where, by) => {
    expect(readTicket(by, where, given, now)).toBeUndefined();
  });
});
