import { describe, expect, onTestFinished, test, vi } from "vitest";
import { parseRunRequest } from "../../src/parse/parse.js";

function problems(filesystem: object): string[] {
  const parsed = parseRunRequest({ sandboxPermission: { filesystem } });
  return parsed.ok ? [] : parsed.issues.map(({ path, message }) => `${path} ${message}`);
}

describe("paths of a boundary", () => {
  test.each(["*.env", "secrets/?.txt", "app/[0-9]", "**"])(
    "are no patterns, which would hold nothing: %s",
    (pattern) => {
      for (const list of ["readable", "writable", "denied"]) {
        expect(problems({ [list]: ["ok", pattern] })).toEqual([
          `sandboxPermission.filesystem.${list}[1] must be a path without *, ? and [: patterns aren't supported; list the folder that holds the files`,
        ]);
      }
    },
  );

  test.each([
    ["writable", "private/out", "private"],
    ["readable", "./private//docs", "private/"],
    ["writable", "private", "private"],
  ])("that are %s don't lie in what is denied: %s", (list, path, denied) => {
    expect(problems({ [list]: ["ok", path], denied: ["other", denied] })).toEqual([
      `sandboxPermission.filesystem.${list}[1] must not be in ${JSON.stringify(denied)}, which is denied with everything in it: remove one of them`,
    ]);
  });

  test("next to a denied path, or above it, are accepted", () => {
    expect(
      problems({ writable: ["private.d", "out"], readable: ["docs"], denied: ["private", "out/keys"] }),
    ).toEqual([]);
  });
});

test("each path of a boundary is taken apart once, however many others it is compared with", () => {
  const paths = (last: string) => Array.from({ length: 100 }, (_, at) => `a/${last}${at}`);
  const filesystem = { mode: "workspace", readable: paths("r"), writable: paths("w"), denied: paths("d") };
  const split = vi.spyOn(String.prototype, "split");
  onTestFinished(() => split.mockRestore());
  expect(problems(filesystem)).toEqual([]);
  expect(split.mock.calls.length).toBeLessThan(10 * 300);
});
