import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { tooFewOpenFiles } from "../src/process-resources.js";

const limits = (files: string) => `Limit            Soft Limit  Hard Limit  Units
Max processes    7           7           processes
Max open files   ${files}         4096        files
`;

test.each([
  ["255", /only 255 files .* needs 256: raise the limit \(`ulimit -n/],
  ["256", undefined],
  ["unlimited", undefined],
])("%s files", (files, message) => {
  const said = tooFewOpenFiles(limits(files));
  if (message === undefined) expect(said).toBeUndefined();
  else expect(said).toMatch(message);
});

test("an unknown limit prints nothing", () => {
  expect(tooFewOpenFiles("")).toBeUndefined();
});

test("a low limit prints a warning, and changes nothing else", () => {
  const program = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
  const command = `ulimit -n 100; exec "$0" "$1" doctor`;
  const { status, stdout, stderr } = spawnSync("/bin/sh", ["-c", command, process.execPath, program], {
    encoding: "utf8",
  });
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toMatch(/^ambit: only 100 files may be open at once, .*\n$/);
});
