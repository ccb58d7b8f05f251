import { describe, expect, it, test } from "vitest";
import { installCommand, missingLines, refusalOn } from "../../../scripts/platform.mjs";
import { npmArguments, widestExtent } from "../../../scripts/setup.mjs";

const missing = [
  { name: "bubblewrap", reason: "the local sandbox builds its jail with it" },
  { name: "git", reason: "tests fetch and push with it" },
];

describe("what set-up says on each kind of system", () => {
  test.each([
    ["linux", undefined, /apt-get install bubblewrap git/],
    ["freebsd", undefined, /apt-get install bubblewrap git {3}\(or your system's packages/],
    ["darwin", undefined, /limactl shell ambit/],
    ["win32", /wsl --install -d Debian/, /./],
  ] as const)("%s", (platform, refusal, lines) => {
    if (refusal === undefined) expect(refusalOn(platform)).toBeUndefined();
    else expect(refusalOn(platform)).toMatch(refusal);
    expect(missingLines(platform, missing).join("\n")).toMatch(lines);
  });

  it("names no apt-get on a Mac", () => {
    expect(missingLines("darwin", missing).join("\n")).not.toContain("apt");
    expect(installCommand("darwin", "git")).toBe("brew install git");
    expect(installCommand("linux", "git")).toBe("apt-get install git");
  });
});

describe("the demo's packages", () => {
  it("are a part of all, without those that only the tests need", () => {
    expect(npmArguments(widestExtent("demo", false), ["server"])).toEqual(
      expect.arrayContaining(["--workspace", "server", "--omit=dev"]),
    );
  });

  it("remove none where all are installed", () => {
    const all = npmArguments(widestExtent("demo", true), ["server"]);
    expect(all.filter((word) => /workspace|omit|prune|^ci$/.test(word))).toEqual([]);
  });
});
