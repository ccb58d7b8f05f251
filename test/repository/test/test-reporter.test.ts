import { fork } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { root } from "../rules/tree.js";

/** Runs the named fixtures with the packages' configuration, like the whole suite. */
async function runFixtures(
  names: readonly string[],
  environment: NodeJS.ProcessEnv,
  options: readonly string[] = [],
) {
  const { CI: _, AMBIT_FORBID_SKIPS: __, ...inherited } = process.env;
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
  return { code, counts, skips: reported("skipped: "), retried: reported("passed at the second attempt: ") };
}

const host = "skipped: test/host.test.ts > needs more than this host has: host: no such kernel here";
const elsewhere = "skipped: test/elsewhere.test.ts > waits for something: not today";
const silent = "skipped: test/silent.test.ts > says nothing: no reason given";

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
    expect(await runFixtures(["passing", ...names], environment)).toMatchObject({ code, counts, skips });
  });

  it.each(["hook", "broken"])("isn't reported for a failure outside of any test: %s", async (name) => {
    const run = await runFixtures(["passing", name], { CI: "true" });
    expect(run).toMatchObject({ code: 1, counts: { passed: 1, failed: 1 }, skips: [] });
  });
});

describe("a test that passes at the second attempt", () => {
  it("is named, and has failed without one", async () => {
    const environment = { CI: "true" };
    expect(await runFixtures(["flaky"], environment)).toMatchObject({ code: 1, retried: [] });
    expect(await runFixtures(["flaky"], environment, ["--retry=1"])).toMatchObject({
      ...{ code: 0, counts: { passed: 1, failed: 0 } },
      retried: ["passed at the second attempt: test/flaky.test.ts > passes at the second attempt"],
    });
  });
});
