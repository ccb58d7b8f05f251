import { describe, expect, test } from "vitest";
import type { WorkspaceMount } from "../../src/confined/arguments.js";
import { misplacedMounts } from "../../src/confined/evidence.js";
import { parseMounts } from "../../src/process/host-processes.js";

const table = `
30 25 0:40 / / ro,nosuid - tmpfs tmpfs rw
31 30 8:1 /data/s/workspace /workspace rw,nosuid - ext4 /dev/sda rw
32 31 8:1 /data/s/workspace/.git /workspace/.git rw,nosuid - ext4 /dev/sda rw
33 32 8:1 /data/s/workspace/.git/config /workspace/.git/config ro,nosuid - ext4 /dev/sda rw
34 31 0:41 / /workspace/keys ro,nosuid - tmpfs tmpfs rw
35 31 0:5 /null /workspace/key ro,nosuid - devtmpfs udev rw
36 31 8:1 /data/s/workspace/a\\040b /workspace/a\\040b ro,nosuid - ext4 /dev/sda rw
`.trim();
const planned: readonly WorkspaceMount[] = [
  { kind: "write", path: ".git" },
  { kind: "read", path: ".git/config" },
  { kind: "hide-folder", path: "keys" },
  { kind: "hide-file", path: "key" },
  { kind: "read", path: "a b" },
];

test("mounts that are as planned are in place, also below the root of a file system", () => {
  expect(misplacedMounts(table, planned)).toEqual([]);
  expect(
    misplacedMounts(
      table.replaceAll("/data/s/workspace /", "/ /").replaceAll("/data/s/workspace/", "/"),
      planned,
    ),
  ).toEqual([]);
});

describe("a mount isn't in place", () => {
  test.each<[string, string, string, string]>([
    ["if it isn't there", "/workspace/.git/config ro", "/elsewhere ro", ".git/config"],
    ["of another file", "workspace/.git/config /workspace", "workspace/other /workspace", ".git/config"],
    ["of another file system", "33 32 8:1", "33 32 8:2", ".git/config"],
    [
      "of a file that was removed",
      ".git/config /workspace",
      ".git/config//deleted /workspace",
      ".git/config",
    ],
    ["that can be written", "/workspace/.git/config ro", "/workspace/.git/config rw", ".git/config"],
    ["that can't be written", "/workspace/.git rw", "/workspace/.git ro", ".git"],
    [
      "that shows a hidden folder",
      "0:41 / /workspace/keys",
      "8:1 /data/s/workspace/keys /workspace/keys",
      "keys",
    ],
    ["that shows a hidden file", "0:5 /null", "8:1 /data/s/workspace/key", "key"],
    ["that was covered by another", "36 31", "36 31 8:1 / /workspace/key rw - ext4 x rw\n36 31", "key"],
  ])("%s", (_what, was, is, path) => {
    expect(table).toContain(was);
    expect(misplacedMounts(table.replace(was, is), planned)).toEqual([path]);
  });

  test("without a workspace", () => {
    expect(misplacedMounts("", planned.slice(0, 1))).toEqual([".git"]);
  });
});

test("paths are read as bytes, with the kernel's octal numbers", () => {
  const line = Buffer.from("1 0 8:1 / /a\\040\\134\\011ü rw - ext4 x rw\n").toString("latin1");
  expect(parseMounts(line)).toEqual([{ device: "8:1", root: "/", path: "/a \\\tü", isReadOnly: false }]);
});
