import { describe, expect, it } from "vitest";
import { table } from "../../../src/cli/display/table.js";

describe("a table", () => {
  it("has a line for each row, whatever others named their sessions", () => {
    const rows = (session: string) => table(["run", "session"], [["r1", session]]);
    expect(rows("s").trimEnd().split("\n")).toEqual([expect.stringContaining("run"), "r1   s"]);
    expect(rows("s\nr2   deploy").trimEnd().split("\n")).toEqual([
      expect.stringContaining("run"),
      "r1   s␊r2   deploy",
    ]);
  });
});
