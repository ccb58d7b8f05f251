import { execFileSync } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { unpackSnapshot } from "../src/snapshots/archive.js";
import { archiveOfLocal, type LocalEntry } from "../src/sources/local.js";
import { hostSandbox } from "./host-sandbox.js";

const limits = { maxEntries: 100, maxBytes: 1_048_576 };

const file = (path: string, text: string, mode = 0o644): LocalEntry => ({
  kind: "file",
  path,
  mode,
  mtime: 1_700_000_000_000,
  content: async () =>
    (async function* () {
      // In pieces, one of them empty.
      for (const piece of [text.slice(0, 1), "", text.slice(1)]) yield Buffer.from(piece);
    })(),
});

test("files, links and folders of this host come into a workspace, in whatever order they are", async () => {
  const workspace = mkdtempSync(join(tmpdir(), "ambit-local-"));
  onTestFinished(() => rmSync(workspace, { recursive: true }));
  mkdirSync(join(workspace, "a"));
  writeFileSync(join(workspace, "a/old"), "old");
  const entries: LocalEntry[] = [
    file("b/c/run.sh", "#!/bin/sh\n", 0o755),
    file("a.b", "beside a"),
    { kind: "link", path: "a/.bin/tool", target: "../tüte/x" },
    file("a/tüte/x", "new"),
    { kind: "folder", path: "empty/er" },
    { kind: "file", path: "gone", mode: 0o644, mtime: 0, content: async () => undefined },
    file("a/old", "replaced"),
    file("b/c2", ""),
  ];
  const { signal } = new AbortController();
  await unpackSnapshot(
    hostSandbox(workspace),
    archiveOfLocal(entries),
    undefined,
    limits,
    signal,
    "workspace",
  );
  const found = execFileSync("find", [".", "-type", "f", "-o", "-type", "l", "-o", "-empty"], {
    cwd: workspace,
    encoding: "utf8",
  });
  expect(found.trim().split("\n").sort()).toEqual([
    "./a.b",
    "./a/.bin/tool",
    "./a/old",
    "./a/tüte/x",
    "./b/c/run.sh",
    "./b/c2",
    "./empty/er",
  ]);
  expect(readFileSync(join(workspace, "a/old"), "utf8")).toBe("replaced");
  expect(readlinkSync(join(workspace, "a/.bin/tool"))).toBe("../tüte/x");
  expect(lstatSync(join(workspace, "b/c/run.sh")).mode & 0o777).toBe(0o755);
});
