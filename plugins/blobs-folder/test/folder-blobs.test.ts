import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { Blobs } from "@ambit/workspace/blobs";
import { expect, onTestFinished, test } from "vitest";
import { folderBlobs } from "../src/index.js";

const log = { debug() {}, info() {}, warn() {}, error() {} };

async function opened() {
  const folder = mkdtempSync(join(tmpdir(), "ambit-blobs-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { folder, blobs: await folderBlobs({ folder }).open({ log, temporary: false }) };
}

async function* parts(...texts: readonly string[]) {
  for (const text of texts) yield Buffer.from(text);
}

const textOf = async (content: AsyncIterable<Uint8Array> | undefined) =>
  await text(Readable.from(content ?? []));

async function ownersOf(blobs: Blobs): Promise<string[]> {
  const owners: string[] = [];
  for await (const { owner } of blobs.owners()) owners.push(owner);
  return owners;
}

test("keeps files by owner, and deletes them with it", async () => {
  const { folder, blobs } = await opened();
  await blobs.put("run/../1", "file-0", parts("a", "b"));
  await blobs.put("run/../1", "file-0", parts("new"));
  await blobs.put("2", "patch", parts("p"));
  const found = await blobs.get("run/../1", "file-0");
  expect(found?.size).toBe(3);
  expect(await textOf(found?.content)).toBe("new");
  expect(await blobs.get("run/../1", "patch")).toBeUndefined();
  expect((await ownersOf(blobs)).sort()).toEqual(["2", "run/../1"]);
  for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o077).toBe(0);
  await blobs.delete("run/../1");
  await blobs.delete("run/../1");
  expect(await blobs.get("run/../1", "file-0")).toBeUndefined();
  expect(await textOf((await blobs.get("2", "patch"))?.content)).toBe("p");
});

test("keeps nothing of a content that fails, and the earlier one stays", async () => {
  const { folder, blobs } = await opened();
  await blobs.put("1", "patch", parts("whole"));
  const broken = async function* () {
    yield Buffer.from("half");
    throw new Error("broken");
  };
  await expect(blobs.put("1", "patch", broken())).rejects.toThrow("broken");
  expect(await textOf((await blobs.get("1", "patch"))?.content)).toBe("whole");
  expect(readdirSync(folder, { recursive: true }).filter((name) => String(name).includes("draft"))).toEqual(
    [],
  );
});

test.each(["../x", "a/b", "owner", "", ".draft-1"])("refuses the name '%s'", async (name) => {
  const { blobs } = await opened();
  await expect(blobs.put("1", name, parts("x"))).rejects.toThrow(TypeError);
});

test("a temporary place ends when it is closed", async () => {
  const blobs = await folderBlobs({}).open({ log, temporary: true });
  await blobs.put("1", "patch", parts("x"));
  await blobs.close();
  expect(await blobs.get("1", "patch")).toBeUndefined();
});
