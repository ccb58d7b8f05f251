import { describe, expect, it } from "vitest";
import { missing, missingFor, needs, skipWithoutNeeds } from "../../../scripts/vitest/needs.ts";

const nothing = () => false;

describe("what a test file needs of its machine", () => {
  it("is named in its comment, and missing with a reason for each", () => {
    expect(missingFor("// needs: jail, git\nimport x;", nothing)).toEqual([
      needs.jail?.reason,
      needs.git?.reason,
    ]);
    expect(missingFor("// needs: jail, git\n", (name) => name === "git")).toEqual([needs.jail?.reason]);
    expect(missingFor("import x; // needs: nothing\n", nothing)).toEqual([]);
  });

  it("is missing for a part of a file too", () => {
    expect(missing(["python", "ipv6"], (name) => name === "python")).toEqual([needs.ipv6?.reason]);
    expect(() => missing(["a moon"])).toThrow(/isn't one of/);
  });

  it("is one of the table", () => {
    expect(() => missingFor("// needs: a moon\n")).toThrow(/"\/\/ needs: a moon" isn't one of jail, docker/);
  });

  it("changes nothing of other files", () => {
    expect(skipWithoutNeeds().transform).toBeTypeOf("function");
  });
});
