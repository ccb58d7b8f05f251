import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { expect } from "vitest";

interface Report {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly {
      readonly title: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

/**
 * Runs the suites of a plugin in `folder`, which has the tools in its `node_modules`, as its author would: in a process of its own.
 * Fails with what failed there.
 *
 * @param only a regular expression for the names of the tests that are run. Default: all.
 * @returns how many tests passed.
 */
export async function passKit(
  folder: string,
  name: string,
  { env = {}, only }: { readonly env?: Readonly<Record<string, string>>; readonly only?: string } = {},
): Promise<number> {
  const report = join(folder, `report-${name.replaceAll("/", "-")}.json`);
  const argv = [
    join(folder, "node_modules/vitest/vitest.mjs"),
    "run",
    "--root",
    join(folder, name),
    "--reporter=json",
    `--outputFile=${report}`,
    ...(only === undefined ? [] : ["-t", only]),
  ];
  const { all } = await execa(process.execPath, argv, {
    cwd: folder,
    env: { ...process.env, ...env },
    all: true,
    reject: false,
  });
  if (!existsSync(report)) throw new Error(all);
  const { success, numPassedTests, testResults }: Report = JSON.parse(readFileSync(report, "utf8"));
  const results = testResults.flatMap(({ assertionResults }) => assertionResults);
  expect(results.flatMap(({ failureMessages }) => failureMessages)).toEqual([]);
  expect(success, testResults.map(({ message }) => message).join("\n")).toBe(true);
  return numPassedTests;
}
