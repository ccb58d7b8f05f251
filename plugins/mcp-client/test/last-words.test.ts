import { describe, expect, test } from "vitest";
import { LastWords, withoutValues } from "../src/stdio-source.js";

async function logged(...writes: readonly string[]): Promise<string[]> {
  const lines: string[] = [];
  const stream = ReadableStream.from(writes.map((text) => Buffer.from(text)));
  await new LastWords(stream, (line) => lines.push(line)).all();
  return lines;
}

describe("a server's output on stderr", () => {
  test("is logged in whole lines, however its writes are split", async () => {
    const text = "starting\nkey is sk-live-123456\n\ndone";
    for (let at = 0; at <= text.length; at += 1) {
      expect(await logged(text.slice(0, at), text.slice(at))).toEqual([
        "starting",
        "key is sk-live-123456",
        "done",
      ]);
    }
  });

  test("is bounded, and truncating leaves no part of a secret", async () => {
    const long = `${"x".repeat(1_990)} sk-live-123456`;
    expect(await logged(long)).toEqual(["[a line of 2005 characters]"]);
    expect(await logged(...Array.from({ length: 10_000 }, () => "x".repeat(100)), "\nnext")).toEqual([
      "[a line of 1000000 characters]",
      "next",
    ]);
    // The control: a line of just that length is logged.
    expect(await logged("x".repeat(2_000))).toEqual(["x".repeat(2_000)]);
  });
});

test.each([
  ["plain", "key sk-live-123456 refused", "key ************** refused"],
  ["in base64", `key ${btoa("sk-live-123456")} refused`, `key ${btoa("**************")} refused`],
  ["a line of it", "-----\nMIIEvQIBADANBg\n-----", "-----\n**************\n-----"],
  ["the whole of several lines", "BEGIN\nMIIEvQIBADANBg\nEND", "************************"],
  ["another value (the control)", "key sk-test-123456 refused", "key sk-test-123456 refused"],
  ["a short one, which occurs in any text", "in mode dev", "in mode dev"],
])("a value of a server's environment isn't quoted: %s", (_how, text, hidden) => {
  const environment = { KEY: "sk-live-123456", PEM: "BEGIN\nMIIEvQIBADANBg\nEND", MODE: "dev" };
  expect(withoutValues(text, environment)).toBe(hidden);
});
