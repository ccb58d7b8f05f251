import { expect, test } from "vitest";
import { isSameImage } from "../../src/plan/index.js";

test.for<[one: string, other: string | undefined, isSame: boolean]>([
  ["node:22", "node:22", true],
  ["node", "docker.io/library/node:latest", true],
  ["library/node:22", "node:22", true],
  ["docker.io/acme/app:1", "acme/app:1", true],
  ["registry.example.com:5000/app", "registry.example.com:5000/app:latest", true],
  ["node:22", "node:24", false],
  ["node:22", "registry.example.com/node:22", false],
  ["node:22", undefined, false],
])("the image %s is %s: %s", ([one, other, isSame]) => {
  expect(isSameImage(one, other)).toBe(isSame);
});
