import { describe, expect, test } from "vitest";
import { jailParts } from "./jails/index.ts";

const planned = [
  ...["--unshare-net", "--cap-drop", "ALL", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"],
  ...["--proc", "/proc", "--ro-bind", "/dev/null", "/proc/keys", "--size", "9", "--tmpfs", "/tmp"],
  ...["--size", "4", "--tmpfs", "/covered", "--remount-ro", "/covered", "--bind-fd", "8", "/workspace"],
];

describe("the parts of a jail's command line", () => {
  const parts = new Map(jailParts(planned).map(({ name, rest }) => [name, rest.join(" ")]));

  test("are the options that protect something, not those that give something", () => {
    expect([...parts.keys()]).toEqual([
      "--unshare-net",
      "--cap-drop ALL",
      "read-only /usr",
      "own /proc",
      "cover of /proc/keys",
      "size of /tmp",
      "read-only /covered",
    ]);
  });

  test.each([
    ["--unshare-net", "--unshare-net ", ""],
    ["--cap-drop ALL", "--cap-drop ALL ", ""],
    ["read-only /usr", "--ro-bind /usr", "--bind /usr"],
    ["own /proc", "--proc /proc", "--ro-bind /proc /proc"],
    ["cover of /proc/keys", "--ro-bind /dev/null /proc/keys ", ""],
    ["size of /tmp", "--size 9 ", ""],
    ["read-only /covered", "--remount-ro /covered ", ""],
  ])("%s is removed alone", (name, words, by) => {
    expect(parts.get(name)).toBe(planned.join(" ").replace(words, by));
  });

  test("are refused for an unknown option", () => {
    expect(() => jailParts(["--share-everything"])).toThrow("There is no definition of a jail without");
  });
});
