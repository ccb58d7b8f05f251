import { afterAll, type TestContext } from "vitest";

/** Reasons of the present suite's skips, by test. */
const skipped = new Map<string, string>();

/** Skips a test, with what this host or suite lacks. The suite shows the reason at its end: see {@link showSkips}. */
export function skip(context: TestContext, reason: string): never {
  skipped.set(context.task.name, reason);
  return context.skip(`host: ${reason}`);
}

/** Prints the reasons of a suite's skips when it has ended: the default reporter shows only their number. */
export function showSkips(): void {
  afterAll(() => {
    if (skipped.size === 0) return;
    const lines = [...skipped].map(([test, reason]) => `  ${test}: ${reason}`);
    skipped.clear();
    process.stdout.write(`skipped, ${lines.length}:\n${lines.join("\n")}\n`);
  });
}
