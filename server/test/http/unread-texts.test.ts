import { expect, test } from "vitest";
import { UnreadTexts } from "../../src/http/response/unread.js";

test("large texts that aren't read displace the oldest of them, and pages of a log nothing", () => {
  const texts = new UnreadTexts(1_000_000);
  const ended: string[] = [];
  const hold = (name: string, length: number) => texts.hold(length, () => ended.push(name));
  for (const page of Array.from({ length: 100 }, (_, index) => `page ${index}`)) hold(page, 131_072);
  hold("first", 400_000);
  const readSecond = hold("second", 400_000);
  expect(ended).toEqual([]);
  hold("third", 400_000);
  expect(ended).toEqual(["first"]);
  readSecond();
  readSecond();
  hold("fourth", 400_000);
  expect(ended).toEqual(["first"]);
  // One that is larger than all may have is read alone.
  hold("fifth", 2_000_000);
  expect(ended).toEqual(["first", "third", "fourth"]);
});
