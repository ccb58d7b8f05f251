import type { Reporter, TestCase, TestModule, TestSuite, Vitest } from "vitest/node";

/** In CI a skip is accepted only with a reason with this prefix, which means: this machine can't run it. */
const hostPrefix = "host: ";

/**
 * Requires reasons for skips. Prints each with its reason, `ctx.skip("host: no user namespaces (EPERM)")`, and fails
 * the run for one without a reason, and in CI (or with `AMBIT_FORBID_SKIPS=1`) for one whose reason isn't the host.
 * Prints each test that passed only at its second attempt.
 * Sends `{passed, failed}` to the parent process if that listens.
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

    for (const test of skipped) console.log(`skipped: ${title(test)}: ${reason(test) ?? "no reason given"}`);
    for (const test of tests.filter((one) => one.diagnostic()?.flaky))
      console.log(`passed at the second attempt: ${title(test)}`);
    if (refused.length > 0) {
      const rule = this.#strict
        ? `only a reason that begins with "${hostPrefix}" is accepted`
        : "a skip must give its reason";
      console.error(`\n${refused.length} skips are failures, because ${rule}:`);
      for (const test of refused) console.error(`  ${title(test)}`);
      process.exitCode = 1;
    }
    process.send?.({
      passed: tests.filter((test) => test.result().state === "passed").length,
      failed:
        tests.filter((test) => test.result().state === "failed").length +
        groups.filter((group) => group.errors().length > 0).length +
        unhandledErrors.length +
        refused.length,
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

function title(test: TestCase): string {
  return `${test.module.relativeModuleId} > ${test.fullName}`;
}
