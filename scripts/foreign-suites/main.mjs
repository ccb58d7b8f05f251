/**
 * Runs the suites of others inside a jail of sandbox-local and, as the control, outside of it as an ordinary user of this machine:
 * `npm run foreign-suites`, or `npm run foreign-suites -- go pjdfstest`. Then it writes docs/foreign-suites.md, with the earlier results
 * of those that it didn't run; `-- --page` runs none. A difference without a reason in `reasons.mjs` is printed, and the command exits
 * with 1. About half an hour on an idle machine with two processors. On Debian, as root:
 * `apt-get install bubblewrap libpython3-testsuite golang-go golang-src cargo`. Needs a build.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../setup.mjs";
import { differences, repeated } from "./comparison.mjs";
import { pageOf, unexplained } from "./page.mjs";
import { inside, outside } from "./places.mjs";
import { suites } from "./suites.mjs";

/** @import { Comparison } from "./comparison.mjs" */
/** @import { Place } from "./places.mjs" */
/** @import { Suite } from "./suites.mjs" */

const results = join(root, ".cache/foreign-suites");
const page = join(root, "docs/foreign-suites.md");

/**
 * @param {Suite} suite
 * @param {string} folder
 * @returns {Promise<Comparison>}
 */
async function compare(suite, folder) {
  const programs = mkdtempSync(join(folder, "programs-"));
  chmodSync(programs, 0o755);
  const version = suite.version(programs);
  /** @type {Readonly<Record<"outside" | "inside", Place>>} */
  const places = { outside: outside(folder), inside: inside(folder, [programs, ...suite.mounts()]) };
  /** @param {readonly string[]} [tests] */
  const attempt = async (tests) => {
    const script = suite.script(programs, tests);
    const what = tests === undefined ? "" : `: again, ${tests.length} tests that differed`;
    console.error(`=== ${suite.name} ${version}${what}`);
    // At the same time: both meet the same load.
    const [without, within] = await Promise.all([
      places.outside(script).then(suite.resultsOf),
      places.inside(script).then(suite.resultsOf),
    ]);
    return { outside: without, inside: within, differences: differences(without, within) };
  };
  const first = await attempt();
  if (first.outside.size === 0) throw new Error(`${suite.name} ran no test`);
  const differing = first.differences.map(({ test }) => test);
  const second = differing.length === 0 ? first : await attempt(differing);
  return {
    id: suite.id,
    version,
    outside: [...first.outside.values()],
    inside: [...first.inside.values()],
    differences: repeated(first.differences, second.differences),
  };
}

/** @param {Suite} suite */
const resultOf = ({ id }) => join(results, `${id}.json`);

async function main() {
  const suiteIds = process.argv.slice(2).filter((word) => word !== "--page");
  const missing = suiteIds.filter((id) => !suites.some((suite) => suite.id === id));
  if (missing.length > 0) {
    console.error(`There is no suite ${missing.join(", ")}: ${suites.map(({ id }) => id).join(", ")}`);
    return 2;
  }
  const isRun = (/** @type {Suite} */ { id }) =>
    suiteIds.length === 0 ? !process.argv.includes("--page") : suiteIds.includes(id);
  mkdirSync(results, { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), "suites-"));
  chmodSync(folder, 0o711);
  try {
    for (const suite of suites.filter(isRun))
      writeFileSync(resultOf(suite), JSON.stringify(await compare(suite, folder)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const without = suites.filter((suite) => !existsSync(resultOf(suite)));
  if (without.length > 0) {
    console.error(`The page needs the results of ${without.map(({ id }) => id).join(", ")} too`);
    return 1;
  }
  /** @type {readonly Comparison[]} */
  const comparisons = suites.map((suite) => JSON.parse(readFileSync(resultOf(suite), "utf8")));
  const open = unexplained(comparisons);
  for (const line of open) console.error(`No reason is stated for ${line}`);
  if (open.length > 0) return 1;
  writeFileSync(page, pageOf(comparisons));
  return 0;
}

process.exitCode = await main();
