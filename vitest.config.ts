import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { globbySync } from "globby";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { globalSetupOf } from "./scripts/vitest/global-setup.ts";
import { SlowestFirst } from "./scripts/vitest/slowest-first.ts";
import { TestReporter } from "./scripts/vitest/test-reporter.ts";
import { isolatedPackages, testsOf, tierOf } from "./scripts/vitest/tiers.ts";

const { workspaces }: { workspaces: string[] } = JSON.parse(readFileSync("package.json", "utf8"));

/** Tests that measure what the machine has left for them: each runs alone, after all others. */
const alone = "test/alone";

/**
 * Packages whose tests wait for many processes of their own, which a busy machine may delay: in CI such a test has a second
 * attempt, and the report names it. An attack has one attempt everywhere: in these packages it says `retry: 0`.
 */
const retried = ["server", "test", "test/tools"];

const tier = tierOf(process.env.AMBIT_TEST_TIER);

function projectsIn(folder: string): TestProjectInlineConfiguration[] {
  const { chosen, others } = testsOf(folder, tier);
  const isAlone = (path: string) => path.startsWith(`${alone}/`);
  const common = {
    globalSetup: globalSetupOf(folder, tier),
    retry: process.env.CI && retried.includes(folder) ? 1 : 0,
  };
  const parallel = {
    ...common,
    name: folder,
    exclude: ["**/node_modules/**", `${alone}/**`, ...others],
    isolate: isolatedPackages.includes(folder),
  };
  const oneByOne = {
    ...common,
    name: `${folder} (alone)`,
    dir: resolve(folder, alone),
    include: ["**/*.test.ts"],
    exclude: ["**/node_modules/**", ...others],
    maxWorkers: 1,
    sequence: { groupOrder: 1 },
  };
  return [...(chosen.every(isAlone) ? [] : [parallel]), ...(chosen.some(isAlone) ? [oneByOne] : [])].map(
    (test) => ({ extends: "./vitest.package.ts", root: folder, test }),
  );
}

/** All packages that have tests, in one run. */
export default defineConfig({
  test: {
    projects: globbySync(workspaces.map((folder) => `${folder}/package.json`))
      .filter((manifest) => JSON.parse(readFileSync(manifest, "utf8")).scripts?.test)
      .map(dirname)
      .flatMap(projectsIn),
    sequence: { sequencer: SlowestFirst },
    reporters: ["default", new TestReporter()],
  },
});
