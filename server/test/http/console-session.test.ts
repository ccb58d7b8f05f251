import { createSecretKey, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  linkMs,
  lowerRole,
  proofOf,
  readSession,
  SignInLinks,
  sealSession,
} from "../../src/http/console/session.js";

const key = createSecretKey(randomBytes(32));
const session = { token: "0".repeat(64), role: "answerer", expiresAt: 2_000 } as const;

describe("a session of the console", () => {
  it("is read until it ends", () => {
    const cookie = sealSession(key, session);
    expect(readSession(key, cookie, 1_999)).toEqual(session);
    expect(readSession(key, cookie, 2_000)).toBeUndefined();
  });

  it.each([
    ["another key's", () => sealSession(createSecretKey(randomBytes(32)), session)],
    ["one without a signature", () => sealSession(key, session).split(".")[0] ?? ""],
    ["an empty one", () => ""],
    ["a long one", () => `${sealSession(key, session)}${"x".repeat(2_000)}`],
    // The key signs other words of the session, too.
    ["one with its proof as the signature", () => `x.${proofOf(key, "x")}`],
  ])("isn't read from %s cookie", (_name, cookie) => {
    expect(readSession(key, cookie(), 0)).toBeUndefined();
  });

  it("has a proof of its own each time", () => {
    const [first, second] = [sealSession(key, session), sealSession(key, session)];
    expect(proofOf(key, first)).not.toBe(proofOf(key, second));
  });

  it("never gets a higher role than the one that makes its link", () => {
    expect(lowerRole("operator", "viewer")).toBe("viewer");
    expect(lowerRole("answerer", "operator")).toBe("answerer");
  });
});

describe("a link to sign in", () => {
  it("is taken once", () => {
    const links = new SignInLinks<string>();
    const code = links.add("session", 0);
    expect(links.take(code, 1)).toBe("session");
    expect(links.take(code, 1)).toBeUndefined();
  });

  it("expires", () => {
    const links = new SignInLinks<string>();
    expect(links.take(links.add("session", 0), linkMs)).toBeUndefined();
  });

  it("is refused where too many wait, until they expire", () => {
    const links = new SignInLinks<number>();
    for (let count = 0; count < 1_000; count += 1) links.add(count, 0);
    expect(() => links.add(1_000, 1)).toThrow("wait to be used");
    expect(links.take(links.add(1_001, linkMs), linkMs)).toBe(1_001);
  });
});
