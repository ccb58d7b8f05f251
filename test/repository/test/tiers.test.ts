import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { globbySync } from "globby";
import { beforeAll, describe, expect, it } from "vitest";
import { ImportGraph } from "../../../scripts/changed-tests.mjs";
import { isSlow, slowTests, tierOf } from "../../../scripts/vitest/tiers.js";
import { importsOf } from "../rules/source-file.js";
import { root } from "../rules/tree.js";

const tests = globbySync("**/{test,e2e}/**/*.test.ts", {
  cwd: root,
  ignore: ["**/node_modules/**", "**/fixtures/**"],
});

const files = new Map(
  globbySync("{agents,bench,core,examples,packages,plugins,server,test}/**/*.ts", {
    cwd: root,
    ignore: ["**/node_modules/**", "**/dist/**"],
  }).map((path) => [path, { path, text: readFileSync(join(root, path), "utf8") }] as const),
);

/** What a test file imports, its own support included. */
function reachedFrom(path: string, reached = new Set<string>()): Set<string> {
  const file = files.get(path);
  for (const name of file === undefined ? [] : importsOf(file)) {
    const target = name.startsWith(".") ? join(dirname(path), name.replace(/\.js$/, ".ts")) : name;
    if (!reached.has(target)) reachedFrom(target, reached.add(target));
  }
  return reached;
}

describe("the tiers", () => {
  it.each(["fast", ""])("refuses the tier %j", (value) => {
    expect(() => tierOf(value)).toThrow("not one of quick, slow, all");
  });

  it.each(slowTests)("%s names tests", (pattern) => {
    expect(globbySync(pattern.replace("!", ""), { cwd: root, ignore: ["**/node_modules/**"] })).not.toEqual(
      [],
    );
  });

  it("leaves engines, clusters and platforms to the slow tests", () => {
    const started = ["@ambit/docker-engine", "@ambit/test-cluster", "@ambit/daytona-loopback"];
    const starting = tests.filter((path) => {
      const reached = reachedFrom(path);
      return started.some((name) => reached.has(name));
    });
    expect(starting.length).toBeGreaterThan(20);
    expect(starting.filter((path) => !isSlow(path))).toEqual([]);
  });
});

describe("the tests that a change can break", () => {
  let graph: ImportGraph;
  beforeAll(() => {
    graph = new ImportGraph();
  });

  it.each([
    ["a plugin's source", "plugins/executor-code/src/index.ts", "plugins/executor-code/test/", "core/test/"],
    ["a program that tests start", "agents/demo/src/main.ts", "agents/demo/test/", "core/test/"],
    ["core, for what is built on it", "core/src/errors.ts", "plugins/mcp-client/test/", undefined],
    ["the server, for those who start it", "server/src/http/app.ts", "test/e2e/", "plugins/sandbox-local/"],
    ["a page that a test reads", "docs/mutations.md", "plugins/sandbox-local/test/conformance/", "server/"],
  ])("%s", (_what, changed, reached, untouched) => {
    const paths = graph.testsFor([changed]);
    expect(paths.filter((path) => path.startsWith(reached))).not.toEqual([]);
    if (untouched !== undefined) expect(paths.filter((path) => path.startsWith(untouched))).toEqual([]);
  });

  it("are all of them, where the change is one of the packages'", () => {
    expect(graph.testsFor(["package-lock.json"])).toHaveLength(tests.length);
  });
});
