import { describe, expect, test } from "vitest";
import { WholeLines } from "../src/last-words.js";

function logged(...writes: readonly string[]): string[] {
  const said: string[] = [];
  const lines = new WholeLines((line) => said.push(line));
  for (const write of writes) lines.push(write);
  lines.end();
  return said;
}

describe("a server's output on stderr", () => {
  test("is logged in whole lines, however its writes are split", () => {
    const text = "starting\nkey is sk-live-123456\n\ndone";
    for (let at = 0; at <= text.length; at += 1) {
      expect(logged(text.slice(0, at), text.slice(at))).toEqual([
        "starting",
        "key is sk-live-123456",
        "done",
      ]);
    }
  });

  test("is bounded, and truncating leaves no part of a secret", () => {
    const long = `${"x".repeat(1_990)} sk-live-123456`;
    expect(logged(long)).toEqual(["[a line of 2005 characters]"]);
    expect(logged(...Array.from({ length: 10_000 }, () => "x".repeat(100)), "\nnext")).toEqual([
      "[a line of 1000000 characters]",
      "next",
    ]);
    // The control: a line of just that length is logged.
    expect(logged("x".repeat(2_000))).toEqual(["x".repeat(2_000)]);
  });
});
