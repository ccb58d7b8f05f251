import { globbySync } from "globby";

/** What a test run consists of: what `npm test` runs, what `npm run test:all` adds to it, or both. */
export type Tier = "quick" | "slow" | "all";

const tiers: readonly string[] = ["quick", "slow", "all"] satisfies readonly Tier[];

/** @throws Error for a value that isn't a tier. Default: all. */
export function tierOf(value: string | undefined): Tier {
  const tier = value ?? "all";
  if (isTier(tier)) return tier;
  throw new Error(`AMBIT_TEST_TIER is "${tier}", not one of ${tiers.join(", ")}`);
}

const isTier = (value: string): value is Tier => tiers.includes(value);

/**
 * Slow by nature: engines, clusters, platforms and real agents are started, every attack meets every mutant, or whole
 * stories are told from end to end. What follows a pattern with "!" is quick all the same.
 */
export const slowTests = [
  "bench/**",
  // Builds the page, and starts a browser.
  "console/**",
  "plugins/sandbox-daytona/**",
  "plugins/sandbox-docker/**",
  "plugins/sandbox-kubernetes/**",
  "!plugins/sandbox-kubernetes/test/tables/{gate-variants,manifest,mutants,network,read-back,rights,status}.test.ts",
  "plugins/sandbox-local/test/{conformance,credentials,probe,programs,reaper,weakened}/**",
  "!plugins/sandbox-local/test/conformance/alone.test.ts",
  "test/{cluster,daytona,docker-engine,replicas,tools}/**",
  "test/kit/test/liar.test.ts",
  // Only with the compilers that CI installs with the engine.
  "test/repository/test/native-programs.test.ts",
  "test/e2e/**",
  "!test/e2e/{client,lifecycle,run}.test.ts",
];

/**
 * Packages whose tests keep servers or engines in what modules share, or replace modules: each file needs a worker of its own.
 * In another package, a module that an earlier file of the worker has imported isn't replaced, nor are its tests defined again.
 */
export const isolatedPackages: readonly string[] = [
  "test",
  "test/replicas",
  "test/tools",
  "packages/egress",
  "plugins/sandbox-kubernetes",
];

/** Where a package has its tests. */
const testFolders = "{test,e2e}/**/*.test.ts";

/** Whether a test file, whose path begins at the repository's root, is slow. */
export const isSlow = (path: string): boolean => slowPaths.has(path);

const slowPaths = new Set(globbySync(slowTests, { ignore: ["**/node_modules/**"] }));

/** The test files of a package that belong to the tier, and those that don't, sorted, with paths from the package. */
export function testsOf(folder: string, tier: Tier) {
  const paths = globbySync(testFolders, { cwd: folder, ignore: ["**/node_modules/**"] }).toSorted();
  const belongs = (path: string) => tier === "all" || isSlow(`${folder}/${path}`) === (tier === "slow");
  return { chosen: paths.filter(belongs), others: paths.filter((path) => !belongs(path)) };
}
