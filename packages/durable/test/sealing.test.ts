import { createHmac, createSecretKey, hkdfSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Sealing } from "../src/sealing.js";

const key = createSecretKey("k".repeat(32), "utf8");
const sealing = new Sealing(key);

describe("a sealed value", () => {
  it.each([
    ["nothing", null],
    ["a short text", "x"],
    ["characters of two units", { text: `x${"😀".repeat(100_000)}` }],
    ["many values", Array.from({ length: 50_000 }, (_, at) => ({ at }))],
  ])("is opened as it was: %s", (_what, value) => {
    expect(sealing.unseal("run", sealing.seal("run", value))).toEqual(value);
  });

  it("is opened for its own run only, and only whole", () => {
    const sealed = sealing.seal("run", { text: "x".repeat(200_000) });
    expect(() => sealing.unseal("another", sealed)).toThrow();
    expect(() => sealing.unseal("run", sealed.slice(0, -8))).toThrow();
    const changed = `${sealed.slice(0, 100_000)}${sealed[100_000] === "A" ? "B" : "A"}${sealed.slice(100_001)}`;
    expect(() => sealing.unseal("run", changed)).toThrow();
    const other = new Sealing(createSecretKey("o".repeat(32), "utf8"));
    expect(() => other.unseal("run", sealed)).toThrow();
  });

  it("is opened with each key that is named, and sealed with the newest", () => {
    const [earlier, other] = [
      createSecretKey("o".repeat(32), "utf8"),
      createSecretKey("p".repeat(32), "utf8"),
    ];
    const value = { text: "x".repeat(200_000) };
    const rolled = new Sealing(earlier, [other, key]);
    const [before, after] = [sealing.seal("run", value), rolled.seal("run", value)];
    expect(rolled.unseal("run", before)).toEqual(value);
    expect(new Sealing(earlier).unseal("run", after)).toEqual(value);
    expect(() => sealing.unseal("run", after)).toThrow();
    expect(() => new Sealing(other).unseal("run", before)).toThrow();
    // A request that is repeated after the change is the same one.
    expect(rolled.isDigestOf(sealing.digest(value), value)).toBe(true);
    expect(sealing.isDigestOf(rolled.digest(value), value)).toBe(false);
    const { newest, readable } = rolled.fingerprints;
    expect([new Set(readable).size, readable[0], readable[2]]).toEqual([
      3,
      newest,
      sealing.fingerprints.newest,
    ]);
    expect(newest).toMatch(/^[0-9a-f]{32}$/);
  });

  it("has the digest of its JSON", () => {
    const value = { text: `x${"😀".repeat(100_000)}` };
    const naming = Buffer.from(hkdfSync("sha256", key, "", "ambit digest of a request", 32));
    const expected = createHmac("sha256", naming).update(JSON.stringify(value)).digest("base64url");
    expect(sealing.digest(value)).toBe(expected);
  });
});
