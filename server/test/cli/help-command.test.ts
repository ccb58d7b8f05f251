import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const program = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

function ambit(...words: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words], { encoding: "utf8" });
  const first = (text: string) => text.trim().split("\n")[0] ?? "";
  return [status, first(stdout), first(stderr)];
}

it.each([
  [[], "Usage: ambit [options] [command]"],
  [["run"], "Usage: ambit run [options] <request>"],
  [["agents", "install"], "Usage: ambit agents install [options] <agent>"],
])("ambit help %j is about that command", (words, usage) => {
  expect(ambit("help", ...words)).toEqual([0, usage, ""]);
});

it.each([
  [["nope"], "error: unknown command 'nope'"],
  [["agents", "nope"], "error: unknown command 'agents nope'"],
])("ambit help %j says that there is none", (words, reason) => {
  expect(ambit("help", ...words)).toEqual([2, "", reason]);
});
