import { describe, it, type TestOptions, TestRunner } from "vitest";
import { missing } from "./needs.ts";

/**
 * Skips the test that is running, with the reason, where this machine lacks one of the needs: `// needs: python` for a
 * part of a file. In `beforeEach` it concerns a whole group.
 */
export function skipWithout(...names: readonly string[]): void {
  const reasons = missing(names);
  if (reasons.length === 0 || process.env.AMBIT_MUST_PROVE) return;
  const test = TestRunner.getCurrentTest();
  if (test === undefined) throw new Error("skipWithout is called in a test, or before each");
  test.context.skip(`host: ${reasons.join("; ")}`);
}

/** `describe` for a group that may not run here: where there is a reason, one skip that gives it takes the group's place. */
export function describeUnless(
  reason: string | undefined,
): (name: string, options: TestOptions | (() => void), body?: () => void) => void {
  return (name, options, body) => {
    const [settings, act] = typeof options === "function" ? [{}, options] : [options, body];
    const skip = () => it("isn't run", (context) => context.skip(`host: ${reason}`));
    describe(name, settings, reason === undefined ? act : skip);
  };
}
