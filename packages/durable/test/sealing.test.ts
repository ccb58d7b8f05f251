import { createHmac, createSecretKey, hkdfSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Sealing } from "../src/sealing.js";

const key = createSecretKey("k".repeat(32), "utf8");
const sealing = new Sealing(key);

describe("a sealed value", () => {
  it.each([
    ["nothing", null],
    ["a short text", "x"],
    ["what ends within a step", { text: "x".repeat(65_536 * 3 + 1) }],
    [
      "characters of two units wherever a step ends",
      { text: "😀".repeat(100_000), more: `x${"😀".repeat(100_000)}` },
    ],
    ["many values", Array.from({ length: 50_000 }, (_, at) => ({ at }))],
  ])("is opened as it was, in one step or in turns: %s", async (_what, value) => {
    const sealed = await sealing.sealInTurns("run", value);
    expect(await sealing.unsealInTurns("run", sealed)).toEqual(value);
    expect(sealing.unseal("run", sealed)).toEqual(value);
    expect(await sealing.unsealInTurns("run", sealing.seal("run", value))).toEqual(value);
  });

  it("is opened for its own run only, and only whole", async () => {
    const sealed = await sealing.sealInTurns("run", { text: "x".repeat(200_000) });
    await expect(sealing.unsealInTurns("another", sealed)).rejects.toThrow();
    await expect(sealing.unsealInTurns("run", sealed.slice(0, -8))).rejects.toThrow();
    const changed = `${sealed.slice(0, 100_000)}${sealed[100_000] === "A" ? "B" : "A"}${sealed.slice(100_001)}`;
    await expect(sealing.unsealInTurns("run", changed)).rejects.toThrow();
    const other = new Sealing(createSecretKey("o".repeat(32), "utf8"));
    await expect(other.unsealInTurns("run", sealed)).rejects.toThrow();
  });

  it("is opened with each key that is named, and sealed with the newest", async () => {
    const [earlier, other] = [
      createSecretKey("o".repeat(32), "utf8"),
      createSecretKey("p".repeat(32), "utf8"),
    ];
    const value = { text: "x".repeat(200_000) };
    const rolled = new Sealing(earlier, [other, key]);
    const [before, after] = [await sealing.sealInTurns("run", value), await rolled.sealInTurns("run", value)];
    expect(await rolled.unsealInTurns("run", before)).toEqual(value);
    expect(rolled.unseal("run", before)).toEqual(value);
    expect(await new Sealing(earlier).unsealInTurns("run", after)).toEqual(value);
    expect(() => sealing.unseal("run", after)).toThrow();
    await expect(new Sealing(other).unsealInTurns("run", before)).rejects.toThrow();
    // A request that is repeated after the change is the same one.
    expect(await rolled.isDigestOf(await sealing.digest(value), value)).toBe(true);
    expect(await sealing.isDigestOf(await rolled.digest(value), value)).toBe(false);
    const { newest, readable } = rolled.fingerprints;
    expect([new Set(readable).size, readable[0], readable[2]]).toEqual([
      3,
      newest,
      sealing.fingerprints.newest,
    ]);
    expect(newest).toMatch(/^[0-9a-f]{32}$/);
  });

  it("has the digest of its JSON", async () => {
    const value = { text: `x${"😀".repeat(100_000)}` };
    const naming = Buffer.from(hkdfSync("sha256", key, "", "ambit digest of a request", 32));
    const expected = createHmac("sha256", naming).update(JSON.stringify(value)).digest("base64url");
    expect(await sealing.digest(value)).toBe(expected);
  });

  it("doesn't block the event loop while it is large", async () => {
    const large = { text: "x".repeat(16_000_000) };
    let turns = 0;
    let counting = setImmediate(function count() {
      turns += 1;
      counting = setImmediate(count);
    });
    const steps = [
      () => sealing.digest(large),
      () => sealing.sealInTurns("run", large).then((sealed) => sealing.unsealInTurns("run", sealed)),
    ];
    for (const step of steps) {
      turns = 0;
      await step();
      expect(turns).toBeGreaterThan(20);
    }
    clearImmediate(counting);
  });
});
