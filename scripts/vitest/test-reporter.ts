import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import type { TestError } from "vitest";
import type { Reporter, TestCase, TestModule, TestSuite, Vitest } from "vitest/node";

/** In CI a skip is accepted only with a reason with this prefix, which means: this machine can't run it. */
const hostPrefix = "host: ";

/**
 * Requires reasons for skips. Prints each with its reason, `ctx.skip("host: no user namespaces (EPERM)")`, and fails
 * the run for one without a reason, and in CI (or with `AMBIT_FORBID_SKIPS=1`) for one whose reason isn't the host.
 * Prints each test that passed only at its second attempt, and at the end each failure in one line.
 * Sends `{passed, failed, failures}`, with one line in `failures` for each failure, to the parent process if that listens.
 */
export class TestReporter implements Reporter {
  readonly #strict = Boolean(process.env.CI) || process.env.AMBIT_FORBID_SKIPS === "1";
  #filtered = false;

  onInit(vitest: Vitest): void {
    this.#filtered = vitest.config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const groups = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const skipped = tests.filter((test) => test.result().state === "skipped" && this.#chosen(test));
    const refused = skipped.filter((test) => !this.#accepts(test));
    const rule = this.#strict
      ? `only a skip whose reason begins with "${hostPrefix}" is accepted`
      : "a skip must give its reason";
    const failed = [
      ...tests
        .filter((test) => test.result().state === "failed")
        .map((test) => `${title(test)}: ${summary(test.result().errors)}`),
      ...groups
        .filter((group) => group.errors().length > 0)
        .map((group) => `${title(group)}: ${summary(group.errors())}`),
      ...unhandledErrors.map((error) => `outside of any test: ${summary([error])}`),
      ...refused.map((test) => `${title(test)}: ${rule}`),
    ];

    for (const test of skipped) console.log(`skipped: ${title(test)}: ${reason(test) ?? "no reason given"}`);
    for (const test of tests.filter((one) => one.diagnostic()?.flaky))
      console.log(`passed at the second attempt: ${title(test)}: ${summary(test.result().errors)}`);
    // Vitest doesn't see these as failures.
    if (refused.length > 0) process.exitCode = 1;
    for (const line of failed) console.log(`failed: ${line}`);
    process.send?.({
      passed: tests.filter((test) => test.result().state === "passed").length,
      failed: failed.length,
      failures: failed,
    });
  }

  /** Excluded by `-t`, or by a failed hook that is counted itself: these are no skips. */
  #chosen(test: TestCase): boolean {
    if (this.#filtered) return false;
    for (let group: TestSuite | TestModule = test.parent; ; group = group.parent) {
      if (group.errors().length > 0) return false;
      if (group.type === "module") return true;
    }
  }

  #accepts(test: TestCase): boolean {
    const given = reason(test);
    return given !== undefined && (!this.#strict || given.startsWith(hostPrefix));
  }
}

function reason(test: TestCase): string | undefined {
  const result = test.result();
  return result.state === "skipped" ? result.note : undefined;
}

function title(one: TestCase | TestSuite | TestModule): string {
  return one.type === "module" ? one.relativeModuleId : `${one.module.relativeModuleId} > ${one.fullName}`;
}

/** Of each attempt's error its first line, where it was thrown and what differed; the report above has the rest. */
function summary(errors: readonly unknown[] = []): string {
  const lines = errors.map((error) => {
    const { message, stacks, diff = "" }: Partial<TestError> = Object(error);
    const line = String(message ?? error).split("\n", 1)[0] ?? "";
    const [frame] = stacks ?? [];
    const place = frame === undefined ? "" : ` (${relative(process.cwd(), frame.file)}:${frame.line})`;
    // Its first two lines say which side is which.
    const changes = stripVTControlCharacters(diff).split("\n").slice(2).filter(isChange);
    const differed = changes.map((change) => ` ${change.replace(/\s+/g, " ")}`).join("");
    return stripVTControlCharacters(line).slice(0, 300) + place + differed.slice(0, 400);
  });
  return lines.join("; ");
}

const isChange = (line: string) => /^[-+] /.test(line);
