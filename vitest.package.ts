import { defineConfig } from "vitest/config";
import { globalSetupOf } from "./scripts/vitest/global-setup.ts";
import { skipWithoutNeeds } from "./scripts/vitest/needs.ts";
import { TestReporter } from "./scripts/vitest/test-reporter.ts";

/** One configuration for every package, so that `npm test -w <package>` and the whole suite agree. */
export default defineConfig({
  // As TypeScript compiles the packages: decorators of parameters name what is injected.
  plugins: [skipWithoutNeeds()],
  oxc: { decorator: { legacy: true } },
  test: {
    include: ["test/**/*.test.ts", "e2e/**/*.test.ts"],
    // Long enough for a busy machine with two cores.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    // A Docker engine is ended, and its data removed, after the last test.
    teardownTimeout: 60_000,
    // Other packages as Node loads them itself, which is faster than through vite.
    server: { deps: { external: [/\/dist\/.*\.js$/] } },
    globalSetup: globalSetupOf("."),
    // Most tests wait for processes of their own. Each project has a limit of its own: the default is one worker here.
    maxWorkers: 4,
    reporters: ["default", new TestReporter()],
  },
});
