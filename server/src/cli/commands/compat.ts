import { stat } from "node:fs/promises";
import { gapLine, isAmbitError, issueLine } from "@ambit/core";
import type { Runner } from "@ambit/runner";
import type { Overrides } from "../../configuration/load.js";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { MalformedJson, parseJson } from "../../results.js";
import { exitCodes } from "../exit-codes.js";
import { openForCommand } from "../open-command.js";
import { readText } from "../read-request.js";

/** Bytes of one file, and requests in all of them. */
const maxFileBytes = 64 * 1024 * 1024;
const maxRequests = 10_000;

/** What became of one recorded request. */
interface Checked {
  /** `requests.ndjson`, or with several requests `requests.ndjson:2`. */
  readonly request: string;
  readonly verdict: "runs" | "refused";
  /** Why it is refused: issues and gaps, each with its fix. */
  readonly reasons: readonly string[];
  readonly warnings: readonly string[];
  /** What would be another than with the runner that Ambit replaces. */
  readonly differences: readonly string[];
}

/** `ambit compat check`: what would differ for recorded requests. Runs none of them. */
export async function compatCheck(
  files: readonly string[],
  options: Overrides & { readonly json?: boolean },
): Promise<number> {
  const { json = false, ...overrides } = options;
  const { runner, registry, evidence } = await openForCommand(overrides);
  if (registry.dialects.length === 0)
    throw new ConfigurationInvalid("plugins", [
      "hold no dialect of another runner to compare with: add @ambit/compat-agenta",
    ]);
  const checked: Checked[] = [];
  try {
    for (const file of files) {
      for (const { name, body } of await requestsIn(file)) {
        if (checked.length >= maxRequests)
          throw new ConfigurationInvalid(file, [`more than ${maxRequests} requests: check fewer at a time`]);
        checked.push(await check(name, body, runner));
      }
    }
  } finally {
    await evidence?.keep(registry);
  }
  process.stdout.write(json ? `${JSON.stringify(checked, undefined, 2)}\n` : checked.map(readable).join(""));
  return checked.every(({ verdict }) => verdict === "runs") ? exitCodes.ok : exitCodes.requestInvalid;
}

async function check(request: string, body: unknown, runner: Runner): Promise<Checked> {
  try {
    const admitted = await runner.plan(body);
    return {
      request,
      verdict: "runs",
      reasons: [],
      warnings: admitted.warnings.map(({ path = "", message }) => issueLine({ path, message })),
      differences: runner.registry.dialects
        .flatMap(({ differences = [] }) => differences)
        .filter(({ applies }) => applies?.(admitted.request) === true)
        .map(({ about, there, here }) => `${about}: there ${there}; here ${here}`),
    };
  } catch (error) {
    if (!isAmbitError(error)) throw error;
    const { issues = [], gaps = [] } = error.toFailure();
    const reasons = [...issues.map(issueLine), ...gaps.map(gapLine)];
    return {
      request,
      verdict: "refused",
      warnings: [],
      differences: [],
      reasons: reasons.length === 0 ? [error.message] : reasons,
    };
  }
}

/** A file is one request, a list of them, or one on each line. */
async function requestsIn(
  file: string,
): Promise<readonly { readonly name: string; readonly body: unknown }[]> {
  if (file !== "-" && (await stat(file).catch(() => undefined))?.isFile() === true) {
    const { size } = await stat(file);
    if (size > maxFileBytes)
      throw new ConfigurationInvalid(file, [`is larger than ${maxFileBytes / 1024 / 1024} MiB: split it`]);
  }
  const content = await readText(file);
  const where = file === "-" ? " on stdin" : ` in ${file}`;
  const bodies = bodiesIn(content, where);
  return bodies.map((body, index) => ({ name: bodies.length === 1 ? file : `${file}:${index + 1}`, body }));
}

/** @throws MalformedJson */
function bodiesIn(content: string, where: string): readonly unknown[] {
  try {
    const whole = parseJson(content, where);
    return Array.isArray(whole) ? whole : [whole];
  } catch (error) {
    const lines = content.split("\n").filter((line) => line.trim() !== "");
    if (!(error instanceof MalformedJson) || lines.length < 2) throw error;
    return lines.map((line, index) => parseJson(line, `${where}, line ${index + 1}`));
  }
}

function readable({ request, verdict, reasons, warnings, differences }: Checked): string {
  const lines = [
    ...reasons.map((reason) => `  refused  ${reason}`),
    ...warnings.map((warning) => `  warns    ${warning}`),
    ...differences.map((difference) => `  differs  ${difference}`),
  ];
  return [`${request}: ${verdict}`, ...lines].join("\n").concat("\n");
}
