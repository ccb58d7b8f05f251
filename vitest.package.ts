import { defineConfig } from "vitest/config";
import { TestReporter } from "./scripts/test-reporter.ts";

/** One configuration for every package, so that `npm test -w <package>` and the whole suite agree. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "e2e/**/*.test.ts"],
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // Most tests wait for processes of their own. Each project has a limit of its own: the default is one worker here.
    maxWorkers: 4,
    reporters: ["default", new TestReporter()],
  },
});
