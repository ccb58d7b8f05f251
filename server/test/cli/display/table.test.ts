import { describe, expect, it } from "vitest";
import { table } from "../../../src/cli/display/table.js";

describe("a table", () => {
  it("fits the terminal by cutting the cells that may be cut, and hides a column without a value", () => {
    const rows = [["1", "", "a-very-long-session-name", "done"]];
    const text = table(["run", "project", "session", "end"], rows, { columns: 24, shrinks: ["session"] });
    expect(
      text
        .trimEnd()
        .split("\n")
        .map((line) => line.trimEnd()),
    ).toEqual(["run  session        end", "1    a-very-long-…  done"]);
  });

  it("has a line for each row, whatever others named their sessions", () => {
    const rows = (session: string) => table(["run", "session"], [["r1", session]]);
    expect(rows("s").trimEnd().split("\n")).toEqual([expect.stringContaining("run"), "r1   s"]);
    expect(rows("s\nr2   deploy").trimEnd().split("\n")).toEqual([
      expect.stringContaining("run"),
      "r1   s␊r2   deploy",
    ]);
  });
});
