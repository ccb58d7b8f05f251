import { expect, it } from "vitest";
import { Progress } from "../../../src/cli/display/progress.js";

/** A progress on a clock that only the test turns. */
function progressAt(isTTY: boolean) {
  let now = 0;
  let written = "";
  const ticks = new Set<() => void>();
  const output = {
    isTTY,
    columns: 40,
    write: (text: string | Uint8Array) => {
      written += text;
      return true;
    },
  };
  const clock = {
    now: () => now,
    every: (_ms: number, callback: () => void) => {
      ticks.add(callback);
      return () => void ticks.delete(callback);
    },
  };
  const pass = (ms: number) => {
    now += ms;
    for (const tick of ticks) tick();
  };
  return { progress: new Progress(output, clock), pass, written: () => written };
}

it("elsewhere than at a terminal there is a line for each step, once a second has passed", () => {
  const { progress, pass, written } = progressAt(false);
  progress.step("probing");
  pass(900);
  expect(written()).toBe("");
  pass(200);
  pass(200);
  progress.detail("attack 1");
  progress.step("verifying");
  pass(100);
  progress.end();
  pass(100);
  expect(written()).toBe("probing …\nverifying …\n");
});

it("a terminal has one line that fits, which is removed", () => {
  const { progress, pass, written } = progressAt(true);
  progress.step("probing");
  pass(500);
  expect(written()).toBe("");
  pass(700);
  progress.detail("a word that is longer than the line of this terminal");
  expect(written().split("\r\u001b[K").at(-1)).toMatch(/^. probing · a word that is longer th.*…$/);
  progress.end();
  expect(written().endsWith("\r\u001b[K")).toBe(true);
});
