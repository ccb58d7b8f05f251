import { createSecretKey, randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { StoreFailed } from "@ambit/core";
import { describe, expect, it } from "vitest";
import { type Blobs, FileSealing, sealedBlobs } from "../src/blobs.js";
import { memoryBlobs } from "./memory-blobs.js";

const header = 52;
const chunk = 65_536 + 16;
const key = () => createSecretKey(randomBytes(32));

function sealed(newest = key(), ...earlier: ReturnType<typeof key>[]) {
  const plain = memoryBlobs();
  return { plain, blobs: sealedBlobs(plain, new FileSealing(newest, earlier)) };
}

async function* one(bytes: Uint8Array) {
  yield bytes;
}

const contentIn = async (blobs: Blobs, owner = "1", name = "f") => {
  const found = await blobs.get(owner, name);
  return found && (await buffer(found.content));
};

/** What goes out before an error, and the error. */
async function readUpToError(blobs: Blobs) {
  const out: Uint8Array[] = [];
  try {
    for await (const bytes of (await blobs.get("1", "f"))?.content ?? one(new Uint8Array())) out.push(bytes);
    return { out: Buffer.concat(out), error: undefined };
  } catch (error) {
    return { out: Buffer.concat(out), error };
  }
}

describe("encrypted files", () => {
  it.each([0, 1, 65_535, 65_536, 65_537, 131_072, 200_000])(
    "of %i bytes are what they were",
    async (size) => {
      const { plain, blobs } = sealed();
      const content = randomBytes(size);
      await blobs.put("1", "f", one(content));
      expect((await blobs.get("1", "f"))?.size).toBe(size);
      expect(await contentIn(blobs)).toEqual(content);
      if (size > 16) expect(plain.kept.get("1")?.get("f")?.includes(content.subarray(0, 16))).toBe(false);
    },
  );

  it("are the same for any pieces that come", async () => {
    const { blobs } = sealed();
    const content = randomBytes(150_000);
    const pieces = async function* () {
      for (let at = 0; at < content.length; at += 7_919) yield content.subarray(at, at + 7_919);
    };
    await blobs.put("1", "f", pieces());
    expect(await contentIn(blobs)).toEqual(content);
  });

  const content = Buffer.concat(["a", "b", "c"].map((letter) => Buffer.alloc(65_536, letter)));
  const attacks: readonly (readonly [what: string, change: (kept: Buffer) => Buffer, wholeChunks: number])[] =
    [
      ["a flipped bit in the first chunk", (kept) => flipped(kept, header + 5), 0],
      ["a flipped bit in the second chunk", (kept) => flipped(kept, header + chunk + 5), 1],
      ["a flipped bit in the last tag", (kept) => flipped(kept, kept.length - 1), 2],
      ["a flipped bit in the salt", (kept) => flipped(kept, header - 1), 0],
      ["a flipped bit in the key's name", (kept) => flipped(kept, 13), 0],
      ["the last byte cut", (kept) => kept.subarray(0, -1), 2],
      ["the last chunk cut", (kept) => kept.subarray(0, header + 2 * chunk), 1],
      ["all chunks cut", (kept) => kept.subarray(0, header), 0],
      ["the header cut", (kept) => kept.subarray(0, header - 1), 0],
      ["nothing left", (kept) => kept.subarray(0, 0), 0],
      ["a byte more", (kept) => Buffer.concat([kept, Buffer.from("x")]), 2],
      [
        "two chunks exchanged",
        (kept) =>
          Buffer.concat([
            kept.subarray(0, header),
            kept.subarray(header + chunk, header + 2 * chunk),
            kept.subarray(header, header + chunk),
            kept.subarray(header + 2 * chunk),
          ]),
        0,
      ],
      [
        "a chunk twice",
        (kept) => Buffer.concat([kept.subarray(0, header + chunk), kept.subarray(header)]),
        1,
      ],
      ["plain text in its place", () => content, 0],
    ];

  it.each(attacks)("fail with %s, and nothing of the broken chunk goes out", async (_what, change, whole) => {
    const { plain, blobs } = sealed();
    await blobs.put("1", "f", one(content));
    const kept = plain.kept.get("1")?.get("f") ?? Buffer.alloc(0);
    // The control: the same way, without a change.
    expect(await readUpToError(blobs)).toEqual({ out: content, error: undefined });
    plain.kept.get("1")?.set("f", change(kept));
    const { out, error } = await readUpToError(blobs);
    expect(error).toBeInstanceOf(StoreFailed);
    expect(error).toMatchObject({ retryable: false });
    expect(out).toEqual(content.subarray(0, whole * 65_536));
  });

  it("can't be put in another's place", async () => {
    const { plain, blobs } = sealed();
    await blobs.put("1", "f", one(Buffer.from("first")));
    await blobs.put("2", "f", one(Buffer.from("second")));
    const moved = plain.kept.get("2")?.get("f") ?? Buffer.alloc(0);
    plain.kept.get("1")?.set("f", moved).set("g", moved);
    await expect(contentIn(blobs)).rejects.toThrow(StoreFailed);
    await expect(contentIn(blobs, "1", "g")).rejects.toThrow(StoreFailed);
    expect(String(await contentIn(blobs, "2"))).toBe("second");
  });

  it("are read with an earlier key, written with the newest, and refused without theirs", async () => {
    const [older, newer] = [key(), key()];
    const { plain, blobs } = sealed(older);
    await blobs.put("1", "f", one(Buffer.from("x")));
    const rotated = sealedBlobs(plain, new FileSealing(newer, [older]));
    expect(String(await contentIn(rotated))).toBe("x");
    await rotated.put("1", "g", one(Buffer.from("y")));
    await expect(contentIn(blobs, "1", "g")).rejects.toThrow(/earlierKeyFiles/);
    expect(String(await contentIn(sealedBlobs(plain, new FileSealing(newer)), "1", "g"))).toBe("y");
  });
});

function flipped(kept: Buffer, at: number): Buffer {
  const changed = Buffer.from(kept);
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
}
