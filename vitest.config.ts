import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { globbySync } from "globby";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { globalSetupOf } from "./scripts/vitest/global-setup.ts";
import { SlowestFirst } from "./scripts/vitest/slowest-first.ts";
import { TestReporter } from "./scripts/vitest/test-reporter.ts";

const { workspaces }: { workspaces: string[] } = JSON.parse(readFileSync("package.json", "utf8"));

/** Tests that measure what the machine has left for them: each runs alone, after all others. */
const alone = "test/alone";

/** Packages whose tests keep servers or engines in what modules share, or replace modules: each file needs a worker of its own. */
const isolated = ["test", "test/replicas", "test/tools", "plugins/sandbox-kubernetes"];

/**
 * Packages whose tests wait for many processes of their own, which a busy machine may delay: in CI such a test has a second
 * attempt, and the report names it. An attack has one attempt everywhere: in these packages it says `retry: 0`.
 */
const retried = [
  "agents/demo",
  "bench",
  "examples/client",
  "plugins/harness-acp",
  "plugins/mcp-http",
  "plugins/sandbox-daytona",
  "plugins/sandbox-docker",
  "plugins/sandbox-kubernetes",
  "server",
  "test",
  "test/daytona",
  "test/replicas",
  "test/tools",
];

function projectsIn(folder: string): TestProjectInlineConfiguration[] {
  const common = { extends: "./vitest.package.ts", root: folder };
  const globalSetup = globalSetupOf(folder);
  const retry = process.env.CI && retried.includes(folder) ? 1 : 0;
  const parallel = {
    ...common,
    test: {
      name: folder,
      exclude: ["**/node_modules/**", `${alone}/**`],
      globalSetup,
      isolate: isolated.includes(folder),
      retry,
    },
  };
  if (!existsSync(join(folder, alone))) return [parallel];
  const test = {
    name: `${folder} (alone)`,
    globalSetup,
    retry,
    dir: resolve(folder, alone),
    include: ["**/*.test.ts"],
    maxWorkers: 1,
    sequence: { groupOrder: 1 },
  };
  return [parallel, { ...common, test }];
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
