import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { StoreFailed } from "@ambit/core/plugin";
import { type Blobs, openedBlobs } from "@ambit/workspace/blobs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type BlobsRig, digestOf, ownersOf, piecesOf, randomContent } from "../../blobs/blobs-rig.js";
import { silentLog } from "../../store/store-rig.js";

/** Bytes of a large file: more than a place with parts puts into one. */
const largeBytes = (process.env.AMBIT_SOAK === undefined ? 17 : 700) * 1024 * 1024 + 5;

/** Owners in the list, more than a page of it may have. */
const manyOwners = 25;

/**
 * The requirements on a place for files, as a suite: whole files or none, each owner's apart, replicas, faults.
 *
 * @param makeRig makes an empty place, a separate one for each test.
 */
export function describeBlobs(name: string, makeRig: () => Promise<BlobsRig>): void {
  describe(`blobs ${name}`, () => {
    let rig: BlobsRig;
    const open: Blobs[] = [];
    const opened = async (temporary = false) => {
      const blobs = openedBlobs(rig.backend, await rig.backend.open({ log: silentLog, temporary }));
      open.push(blobs);
      return blobs;
    };
    const contentIn = async (blobs: Blobs, owner: string, file: string) => {
      const found = await blobs.get(owner, file);
      return found && (await buffer(found.content)).toString();
    };

    beforeEach(async () => {
      rig = await makeRig();
    });
    afterEach(async () => {
      await Promise.all(open.splice(0).map((blobs) => blobs.close()));
      await rig.close();
    });

    it("keeps files by owner, replaces them, and deletes them with their owner", async () => {
      const blobs = await opened();
      const [one, other] = ["project/../1", "1"];
      await blobs.put(one, "file-0", piecesOf(Buffer.from("earlier")));
      await blobs.put(one, "file-0", piecesOf(Buffer.from("new")));
      await blobs.put(one, "file-1", piecesOf(Buffer.from("")));
      await blobs.put(other, "patch", piecesOf(Buffer.from("p")));
      expect((await blobs.get(one, "file-0"))?.size, "the size must be that of the new content").toBe(3);
      expect(await contentIn(blobs, one, "file-0")).toBe("new");
      expect(await contentIn(blobs, one, "file-1")).toBe("");
      expect(await blobs.get(one, "patch")).toBeUndefined();
      expect(await blobs.get("project", "patch")).toBeUndefined();
      expect(await ownersOf(blobs)).toEqual([other, one]);
      await blobs.delete(one);
      await blobs.delete(one);
      expect(await blobs.get(one, "file-0")).toBeUndefined();
      expect(await ownersOf(blobs)).toEqual([other]);
      expect(await contentIn(blobs, other, "patch")).toBe("p");
      // A deleted owner may come again.
      await blobs.put(one, "file-0", piecesOf(Buffer.from("again")));
      expect(await ownersOf(blobs)).toEqual([other, one]);
    });

    it("lists each owner once, and none of a later time", async () => {
      const blobs = await opened();
      const owners = Array.from({ length: manyOwners }, (_, index) => `run-${index}-ü`).sort();
      for (const owner of owners) {
        await blobs.put(owner, "a", piecesOf(Buffer.from("a")));
        await blobs.put(owner, "b", piecesOf(Buffer.from("b")));
      }
      expect(await ownersOf(blobs)).toEqual(owners);
      expect(await ownersOf(blobs, Date.now() - 600_000)).toEqual([]);
    });

    it("lists an owner's files with their times, and deletes one of them", async () => {
      const blobs = await opened();
      const names = Array.from({ length: 23 }, (_, index) => `file-${index}`).sort();
      for (const file of names) await blobs.put("1", file, piecesOf(Buffer.from("x")));
      await blobs.put("2", "other", piecesOf(Buffer.from("x")));
      const listed: string[] = [];
      for await (const { name: file, at } of blobs.files("1")) {
        listed.push(file);
        expect(
          Math.abs(Date.now() - at),
          "a file's time must be that of its writing, within ten minutes",
        ).toBeLessThan(600_000);
      }
      expect(listed.sort()).toEqual(names);
      await blobs.deleteFile("1", "file-3");
      await blobs.deleteFile("1", "file-3");
      expect(await blobs.get("1", "file-3")).toBeUndefined();
      expect(await contentIn(blobs, "1", "file-4")).toBe("x");
      for await (const { name: file } of blobs.files("nobody")) expect(file).toBeUndefined();
    });

    it("keeps a large content of unknown length, and reads it in pieces", { timeout: 600_000 }, async () => {
      const blobs = await opened();
      const large = randomContent(largeBytes);
      await blobs.put("1", "large", piecesOf(large));
      const found = await blobs.get("1", "large");
      expect(found?.size, "the size of a large file must be that of its content").toBe(large.length);
      expect(await digestOf(found?.content)).toBe(createHash("sha256").update(large).digest("hex"));
      // A reader that leaves early takes nothing with it.
      for await (const bytes of (await blobs.get("1", "large"))?.content ?? []) {
        expect(
          bytes.length,
          "a large file must be read in pieces: the first one was the whole content",
        ).toBeLessThan(large.length);
        break;
      }
      expect(
        (await blobs.get("1", "large"))?.size,
        "a reader that leaves early must not change the file",
      ).toBe(large.length);
    });

    it.each([
      ["at once", 0],
      ["half way", 9 * 1024 * 1024],
    ])("keeps nothing of a content that fails %s, and the earlier one stays", async (_when, size) => {
      const blobs = await opened();
      await blobs.put("1", "patch", piecesOf(Buffer.from("whole")));
      const broken = async function* () {
        yield* piecesOf(randomContent(size));
        throw new RangeError("broken");
      };
      await expect(blobs.put("1", "patch", broken())).rejects.toThrow(RangeError);
      await expect(blobs.put("1", "other", broken())).rejects.toThrow(RangeError);
      expect(await contentIn(blobs, "1", "patch")).toBe("whole");
      expect(await blobs.get("1", "other")).toBeUndefined();
    });

    it.each(["../x", "a/b", "owner", "", ".draft-1", "A", "x".repeat(65)])(
      "refuses the name '%s'",
      async (file) => {
        const blobs = await opened();
        await expect(blobs.put("1", file, piecesOf(Buffer.from("x")))).rejects.toThrow(TypeError);
        await expect(blobs.get("1", file)).rejects.toThrow(TypeError);
      },
    );

    it("shows what one process keeps to another, and a file being replaced as one of the two", async () => {
      const [one, other] = [await opened(), await opened()];
      const contents = ["a", "b"].map((letter) => letter.repeat(300_000));
      await one.put("1", "f", piecesOf(Buffer.from(contents[0] ?? "")));
      const writing = Promise.all(
        [...contents, ...contents].map((content, index) =>
          (index % 2 === 0 ? one : other).put("1", "f", piecesOf(Buffer.from(content))),
        ),
      );
      // A file that is replaced between the look for it and its reading may fail; it is never a mixture.
      for (let read = 0; read < 5; read += 1) {
        const seen = await contentIn(other, "1", "f").catch((error: unknown) => error);
        if (!(seen instanceof StoreFailed)) expect(contents).toContain(seen);
      }
      await writing;
      expect(contents).toContain(await contentIn(other, "1", "f"));
      await other.delete("1");
      expect(await one.get("1", "f")).toBeUndefined();
    });

    it("keeps a temporary place apart, and ends it when it is closed", async () => {
      const [temporary, lasting] = [await opened(true), await opened()];
      await temporary.put("1", "f", piecesOf(Buffer.from("x")));
      expect(await contentIn(temporary, "1", "f")).toBe("x");
      expect(await lasting.get("1", "f")).toBeUndefined();
      expect(await ownersOf(lasting)).toEqual([]);
      await temporary.close();
      open.splice(open.indexOf(temporary), 1);
      expect(await lasting.get("1", "f")).toBeUndefined();
    });

    it("fails with store_failed under every fault, shows no half file, and goes on after it", async () => {
      const blobs = await opened();
      const large = randomContent(9 * 1024 * 1024);
      await blobs.put("1", "whole", piecesOf(large));
      expect(rig.faults.length, "pass the faults that the place can have").toBeGreaterThan(0);
      for (const { name: fault, breaks, begin } of rig.faults) {
        const end = await begin();
        const read = async () => await digestOf((await blobs.get("1", "whole"))?.content);
        await expect(read(), `${fault}: read`).rejects.toThrow(StoreFailed);
        await expect(
          blobs.put("1", "whole", piecesOf(randomContent(9 * 1024 * 1024))),
          `${fault}: replace`,
        ).rejects.toThrow(StoreFailed);
        await expect(blobs.put("1", "new", piecesOf(large)), `${fault}: put`).rejects.toThrow(StoreFailed);
        if (breaks === "everything") {
          await expect(blobs.get("1", "whole"), `${fault}: get`).rejects.toThrow(StoreFailed);
          await expect(ownersOf(blobs), `${fault}: owners`).rejects.toThrow(StoreFailed);
          await expect(blobs.delete("1"), `${fault}: delete`).rejects.toThrow(StoreFailed);
        }
        await end();
        expect(await blobs.get("1", "new"), `${fault}: afterwards`).toBeUndefined();
        expect(await read(), `${fault}: afterwards`).toBe(createHash("sha256").update(large).digest("hex"));
      }
    });
  });
}
