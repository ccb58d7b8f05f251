import { fork } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { skipWithout } from "../../../scripts/vitest/skip-without.ts";
import { root } from "../rules/tree.js";

/** Runs the named fixtures with the packages' configuration, like the whole suite. */
async function runFixtures(
  names: readonly string[],
  environment: NodeJS.ProcessEnv,
  options: readonly string[] = [],
) {
  const { CI: _, AMBIT_FORBID_SKIPS: __, AMBIT_MUST_PROVE: ___, ...inherited } = process.env;
  const fixtures = fileURLToPath(new URL("../fixtures/skips", import.meta.url));
  const child = fork(
    `${root}/node_modules/vitest/vitest.mjs`,
    [
      "run",
      "--root",
      fixtures,
      "--config",
      `${root}/vitest.package.ts`,
      ...options,
      ...names.map((name) => `/${name}.test`),
    ],
    { env: { ...inherited, ...environment }, stdio: ["ignore", "pipe", "ignore", "ipc"] },
  );
  let counts: unknown;
  child.on("message", (message) => {
    counts = message;
  });
  const closed = once(child, "close");
  const output = child.stdout ? await text(child.stdout) : "";
  const [code] = await closed;
  const reported = (start: string) => output.split("\n").filter((line) => line.startsWith(start));
  return {
    code,
    counts,
    skips: reported("skipped: "),
    retried: reported("passed at the second attempt: "),
    failures: reported("failed: "),
  };
}

const host = "skipped: test/host.test.ts > needs more than this host has: host: no such kernel here";
const elsewhere = "skipped: test/elsewhere.test.ts > waits for something: not today";
const silent = "skipped: test/silent.test.ts > says nothing: no reason given";

describe("a file that needs what the machine lacks", () => {
  it("is skipped until the machine has it, although files are kept from run to run", async () => {
    skipWithout("git");
    const without = await runFixtures(["needy"], { PATH: "/nowhere" });
    expect(without.skips).toEqual([expect.stringContaining("host: no git")]);
    expect(await runFixtures(["needy"], {})).toMatchObject({ skips: [], counts: { passed: 1, failed: 0 } });
    expect((await runFixtures(["needy"], { PATH: "/nowhere" })).skips).toEqual(without.skips);
  });
});

describe("a skip", () => {
  it.each([
    ["of the host is accepted in CI", ["host"], { CI: "true" }, 0, { passed: 1, failed: 0 }, [host]],
    [
      "for another reason is a failure in CI",
      ["elsewhere"],
      { CI: "true" },
      1,
      { passed: 1, failed: 1 },
      [elsewhere],
    ],
    [
      "can be forbidden elsewhere too",
      ["elsewhere"],
      { AMBIT_FORBID_SKIPS: "1" },
      1,
      { passed: 1, failed: 1 },
      [elsewhere],
    ],
    ["with any reason is accepted at a desk", ["elsewhere"], {}, 0, { passed: 1, failed: 0 }, [elsewhere]],
    ["without a reason is a failure everywhere", ["silent"], {}, 1, { passed: 1, failed: 1 }, [silent]],
  ])("%s", async (_, names, environment, code, counts, skips) => {
    const run = await runFixtures(["passing", ...names], environment);
    expect(run).toMatchObject({ code, counts, skips });
    expect(run.failures).toHaveLength(counts.failed);
  });

  it.each([
    ["hook", 1, "test/hook.test.ts: the hook is broken (test/repository/fixtures/skips/test/hook.test.ts:4)"],
    [
      "broken",
      1,
      "test/broken.test.ts: this file can't be loaded (test/repository/fixtures/skips/test/broken.test.ts:1)",
    ],
    [
      "unhandled",
      2,
      "outside of any test: nothing waited for this (test/repository/fixtures/skips/test/unhandled.test.ts:4)",
    ],
  ])(
    "isn't reported for a failure outside of any test, which is named: %s",
    async (name, passed, failure) => {
      const run = await runFixtures(["passing", name], { CI: "true" });
      expect(run).toMatchObject({ code: 1, counts: { passed, failed: 1 }, skips: [] });
      expect(run.failures).toEqual([`failed: ${failure}`]);
    },
  );
});

describe("a test that passes at the second attempt", () => {
  it("is named, and has failed without one", async () => {
    const environment = { CI: "true" };
    expect(await runFixtures(["flaky"], environment)).toMatchObject({
      code: 1,
      retried: [],
      failures: [expect.stringMatching(/^failed: test\/flaky.test.ts > .*: expected 1 to be 2/)],
    });
    expect(await runFixtures(["flaky"], environment, ["--retry=1"])).toMatchObject({
      code: 0,
      counts: { passed: 1, failed: 0 },
      retried: [
        "passed at the second attempt: test/flaky.test.ts > passes at the second attempt: expected 1 to be 2 // Object.is equality (test/repository/fixtures/skips/test/flaky.test.ts:7) - 2 + 1",
      ],
    });
  });
});
