import { expect, it } from "vitest";
import { differences, repeated } from "../../../scripts/foreign-suites/comparison.mjs";
import { pageOf, unexplained } from "../../../scripts/foreign-suites/page.mjs";
import { reasons } from "../../../scripts/foreign-suites/reasons.mjs";
import {
  goResults,
  junitResults,
  pjdfstestResults,
  suites,
} from "../../../scripts/foreign-suites/suites.mjs";
import { readText } from "../rules/tree.js";

it("npm run foreign-suites reads what each suite prints", () => {
  const xml = `<testsuite><testcase name="test.test_os.One.test_a" status="run" /><testcase name="test.test_os.One.test_b"
    status="run"><skipped>no</skipped></testcase><testcase name="test.test_os.One.test_c"><error>E</error></testcase></testsuite>`;
  expect([...junitResults(xml)]).toEqual([
    ["test_os.One.test_a", "passed"],
    ["test_os.One.test_b", "skipped"],
    ["test_os.One.test_c", "failed"],
  ]);
  const lines = [
    { Action: "output", Package: "os", Test: "TestA", Output: "=== RUN" },
    { Action: "pass", Package: "os", Test: "TestA" },
    { Action: "skip", Package: "os", Test: "TestB/part" },
    { Action: "pass", Package: "os" },
    { Action: "fail", Package: "net" },
  ].map((line) => JSON.stringify(line));
  expect([...goResults(["# net", ...lines].join("\n"))]).toEqual([
    ["os:TestA", "passed"],
    ["os:TestB/part", "skipped"],
    ["net:", "failed"],
  ]);
  const printed =
    "chmod::efault    ok\nchown::erofs   skipped\n\trequires root privileges\nopen::eloop  FAILED\n";
  expect([...pjdfstestResults(printed)]).toEqual([
    ["chmod::efault", "passed"],
    ["chown::erofs", "skipped"],
    ["open::eloop", "failed"],
  ]);
});

it("counts a difference that the second attempt shows too, and asks for its reason", () => {
  const outside = new Map([["a", "passed"] as const, ["b", "passed"] as const, ["c", "failed"] as const]);
  const inside = new Map([["a", "failed"] as const, ["c", "failed"] as const]);
  const first = differences(outside, inside);
  expect(first).toEqual([
    { test: "a", outside: "passed", inside: "failed" },
    { test: "b", outside: "passed", inside: "not run" },
  ]);
  const lasting = repeated(first, differences(outside, new Map([...inside, ["b", "passed"]])));
  expect(lasting.map(({ test }) => test)).toEqual(["a"]);
  const comparison = { id: "go", version: "1", outside: [], inside: [], differences: lasting };
  expect(unexplained([comparison])).toEqual(["go a: passed, inside failed"]);
});

it("docs/foreign-suites.md has its generator's text, and the reasons that are stated: npm run foreign-suites -- --page", () => {
  const { text } = readText("docs/foreign-suites.md");
  const without = (page: string) => page.split("\n").filter((line) => line !== "" && !/^\| /.test(line));
  expect(without(text)).toEqual(without(pageOf([])));
  for (const { name } of suites) expect(text).toMatch(new RegExp(`^\\| ${name} [\\d.]+: `, "m"));
  for (const { parts } of suites) expect(text).toContain(`: ${parts} |`);
  for (const { reason } of reasons) expect(text).toContain(` | ${reason} |`);
});
