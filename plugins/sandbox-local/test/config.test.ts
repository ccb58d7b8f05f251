import { expect, it } from "vitest";
import { configSchema } from "../src/config.js";

// A path that isn't found protects nothing, without a sign of it.
it.each(["/workspace/.env", "/etc", "..", "../x", "a/../..", "."])(
  "refuses %s as a protected path",
  (path) => {
    const parsed = configSchema.safeParse({ protectedPaths: [".git/hooks", path] });
    expect(parsed.error?.issues).toMatchObject([
      { path: ["protectedPaths", 1], message: "must be relative to the workspace, and stay in it" },
    ]);
  },
);

it.each([".env", "./.env", "a/../.env", "..a/b"])("takes %s as a protected path", (path) => {
  expect(configSchema.parse({ protectedPaths: [path] }).protectedPaths).toEqual([path]);
});
