import { mkdtempSync, readdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describeBlobs } from "@ambit/testkit/vitest";
import { expect, onTestFinished, test } from "vitest";
import { folderBlobs } from "../src/index.js";

const log = { debug() {}, info() {}, warn() {}, error() {} };

function emptyFolder(): string {
  return mkdtempSync(join(tmpdir(), "ambit-blobs-test-"));
}

describeBlobs("folder", async () => {
  const folder = emptyFolder();
  const aside = `${folder}-aside`;
  return {
    backend: folderBlobs({ folder }),
    faults: [
      {
        name: "a disk that was taken away",
        breaks: "content",
        begin: async () => {
          renameSync(folder, aside);
          writeFileSync(folder, "no folder");
          return async () => {
            rmSync(folder);
            renameSync(aside, folder);
          };
        },
      },
    ],
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
});

test("only the runner's user reads them, and a content that fails leaves no draft", async () => {
  const folder = emptyFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const blobs = await folderBlobs({ folder }).open({ log, temporary: false });
  await blobs.put("1", "patch", Readable.from([Buffer.from("x")]));
  const broken = async function* () {
    yield Buffer.from("half");
    throw new Error("broken");
  };
  await expect(blobs.put("1", "patch", broken())).rejects.toThrow("broken");
  for (const name of readdirSync(folder, { recursive: true }))
    expect(statSync(join(folder, String(name))).mode & 0o077).toBe(0);
  expect(readdirSync(folder, { recursive: true }).filter((name) => String(name).includes("draft"))).toEqual(
    [],
  );
});

test("what a killed process had begun to write is removed after a day, never seen before", async () => {
  const folder = emptyFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const blobs = await folderBlobs({ folder }).open({ log, temporary: false });
  await blobs.put("1", "patch", Readable.from([Buffer.from("x")]));
  const [own = ""] = readdirSync(folder);
  const [old, young] = [".draft-0", ".draft-1"].map((name) => join(folder, own, name));
  for (const path of [old, young]) writeFileSync(path ?? "", "half");
  const before = new Date(Date.now() - 25 * 60 * 60 * 1_000);
  utimesSync(old ?? "", before, before);
  const names: string[] = [];
  for await (const { name } of blobs.files("1")) names.push(name);
  expect(names).toEqual(["patch"]);
  expect(readdirSync(join(folder, own)).sort()).toEqual([".draft-1", "owner", "patch"]);
});

test("the next file names its owner again where a killed process left half a name", async () => {
  const folder = emptyFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const blobs = await folderBlobs({ folder }).open({ log, temporary: false });
  await blobs.put("run-1", "patch", Readable.from([Buffer.from("x")]));
  const [own = ""] = readdirSync(folder);
  writeFileSync(join(folder, own, "owner"), "ru");
  await blobs.put("run-1", "archive", Readable.from([Buffer.from("x")]));
  const owners: string[] = [];
  for await (const { owner } of blobs.owners(Date.now() + 1_000)) owners.push(owner);
  expect(owners).toEqual(["run-1"]);
});
