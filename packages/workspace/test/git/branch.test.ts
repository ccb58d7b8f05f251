import { describe, expect, it } from "vitest";
import { branchIn, namesOf } from "../../src/git/checkout.js";

const id = "a".repeat(40);
const listed = (...names: readonly string[]) => names.map((name) => `${id}\t${name}\n`).join("");

describe("the branch that a name refers to", () => {
  it.for<[what: string, ref: string | undefined, listed: string, branch: string | undefined]>([
    ["HEAD's own", undefined, `ref: refs/heads/main\tHEAD\n${listed("HEAD")}`, "main"],
    ["none where HEAD names no branch", undefined, listed("HEAD"), undefined],
    [
      "none where HEAD refers to something else",
      undefined,
      `ref: refs/tags/v1\tHEAD\n${listed("HEAD")}`,
      undefined,
    ],
    ["its own", "topic/one", listed("refs/heads/topic/one"), "topic/one"],
    ["its own, by the whole name", "refs/heads/main", listed("refs/heads/main"), "main"],
    ["none for a tag", "v1", listed("refs/tags/v1"), undefined],
    [
      "none where a tag has the same name, which git takes first",
      "v1",
      listed("refs/heads/v1", "refs/tags/v1"),
      undefined,
    ],
    [
      "none for another one that only ends like it",
      "main",
      listed("refs/heads/old/refs/heads/main"),
      undefined,
    ],
    [
      "none for a name that leads out of its folder",
      undefined,
      `ref: refs/heads/../../x\tHEAD\n${listed("HEAD")}`,
      undefined,
    ],
    [
      "none for a name that git doesn't accept",
      undefined,
      `ref: refs/heads/a.lock\tHEAD\n${listed("HEAD")}`,
      undefined,
    ],
    ["none where nothing is listed", "main", "", undefined],
  ])("is %s", ([, ref, printed, branch]) => {
    expect(branchIn(printed, namesOf(ref))).toBe(branch);
  });
});
