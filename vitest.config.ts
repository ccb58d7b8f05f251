import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { globbySync } from "globby";
import { defineConfig } from "vitest/config";
import { TestReporter } from "./scripts/test-reporter.ts";

const { workspaces }: { workspaces: string[] } = JSON.parse(readFileSync("package.json", "utf8"));

/** All packages that have tests, in one run. */
export default defineConfig({
  test: {
    projects: globbySync(workspaces.map((folder) => `${folder}/package.json`))
      .filter((manifest) => JSON.parse(readFileSync(manifest, "utf8")).scripts?.test)
      .map(dirname)
      .map((folder) => ({ extends: "./vitest.package.ts", root: folder, test: { name: folder } })),
    reporters: ["default", new TestReporter()],
  },
});
