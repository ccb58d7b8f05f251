import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { z } from "zod";

/** Installed separately: it needs overrides. */
const name = "@modelcontextprotocol/conformance";
const require = createRequire(new URL("../mcp-conformance/package.json", import.meta.url));

/** The program of MCP's own conformance suite; undefined where it isn't installed. */
export function conformanceProgram(): string | undefined {
  try {
    const manifest = require.resolve(`${name}/package.json`);
    return join(dirname(manifest), "dist", "index.js");
  } catch {
    return undefined;
  }
}

const checkSchema = z.object({ id: z.string(), status: z.string(), errorMessage: z.string().optional() });
/** What a scenario of the suite found out. */
export type ConformanceCheck = z.output<typeof checkSchema>;

/**
 * The checks of each scenario by its name, without those that only inform. One start for all: most of one is loading its code.
 *
 * @param argv of the suite, without its output.
 */
export async function runConformance(
  program: string,
  argv: readonly string[],
): Promise<ReadonlyMap<string, readonly ConformanceCheck[]>> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-mcp-conformance-"));
  try {
    // Its exit code also counts the scenarios that are expected to fail.
    await new Promise<void>((resolve) => {
      execFile(process.execPath, [program, ...argv, "-o", folder], { env: { PATH: process.env.PATH } }, () =>
        resolve(),
      );
    });
    const checks = new Map<string, readonly ConformanceCheck[]>();
    for (const path of await readdir(folder, { recursive: true })) {
      if (basename(path) !== "checks.json") continue;
      const [, scenario = path] = /^(?:server-)?(.+)-20\d\d-\d\d-\d\dT/.exec(dirname(path)) ?? [];
      const all = z.array(checkSchema).parse(JSON.parse(await readFile(join(folder, path), "utf8")));
      checks.set(
        scenario,
        all.filter(({ status }) => status !== "INFO"),
      );
    }
    return checks;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Checks that don't pass, as `scenario:id`, each with the reason. */
export type Exceptions = readonly (readonly [check: RegExp, reason: string])[];

/**
 * What contradicts the exceptions: checks that fail without a reason, those that pass in spite of one, and exceptions without a
 * check. What a server sends must always be of the protocol's form.
 */
export function contradictionsOf(
  checks: ReadonlyMap<string, readonly ConformanceCheck[]>,
  exceptions: Exceptions,
): readonly { readonly check: string; readonly reason?: string }[] {
  const judged = [...checks].flatMap(([scenario, all]) =>
    all
      .filter(({ status }) => status !== "SKIPPED")
      .map(({ id, status, errorMessage = status }) => {
        const check = `${scenario}:${id}`;
        const isExcused = id !== "wire-schema-valid" && exceptions.some(([pattern]) => pattern.test(check));
        return { check, isPassed: status === "SUCCESS", isExcused, reason: errorMessage };
      }),
  );
  const unused = exceptions.filter(([pattern]) => !judged.some(({ check }) => pattern.test(check)));
  return [
    ...judged.filter(({ isPassed, isExcused }) => isPassed === isExcused),
    ...unused.map(([pattern]) => ({ check: String(pattern) })),
  ];
}
