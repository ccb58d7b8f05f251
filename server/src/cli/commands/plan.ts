import { type FailedResult, gapLines, isAmbitError, issueLine, type PlanResponse } from "@ambit/core";
import type { Overrides } from "../../configuration/load.js";
import { printable } from "../../logging/printable.js";
import { failedResult, isServerFault, MalformedJson, planResponse } from "../../results.js";
import { colors, columnsOf, marks, padded, widest, wrapped } from "../display/layout.js";
import { Progress } from "../display/progress.js";
import { exitCodeOf, exitCodes } from "../exit-codes.js";
import { openForCommand } from "../open-command.js";
import { readRequest } from "../read-request.js";

/** `ambit plan`: whether the request could run; with `--json` as `POST /plan` answers. */
export async function plan(
  file: string,
  { json = false, ...overrides }: Overrides & { readonly json?: boolean },
): Promise<number> {
  const progress = new Progress();
  const { runner, registry, evidence, log } = await openForCommand(overrides);
  const print = (response: PlanResponse | FailedResult) => {
    progress.end();
    const text = json
      ? `${JSON.stringify(response, undefined, 2)}\n`
      : planReport(response, columnsOf(process.stdout));
    process.stdout.write(text);
  };
  try {
    const body = await readRequest(file);
    if (!json) progress.step("probing what this host guarantees");
    print(planResponse(await runner.plan(body)));
    return exitCodes.ok;
  } catch (error) {
    if (!isAmbitError(error) && !(error instanceof MalformedJson)) throw error;
    const result = failedResult(error);
    if (isServerFault(error)) log.error({ error }, "the request could not be planned");
    print(result);
    return exitCodeOf(result.failure);
  } finally {
    progress.end();
    await evidence?.keep(registry);
  }
}

/** A plan for a person: the verdict, what is required and who guarantees it, or every gap and issue. Pure. */
function planReport(response: PlanResponse | FailedResult, columns: number): string {
  const lines = response.ok ? acceptedLines(response, columns) : refusedLines(response, columns);
  return lines.map((line) => `${line}\n`).join("");
}

function acceptedLines({ plan, warnings = [] }: PlanResponse, columns: number): readonly string[] {
  const { sandbox, required, guarantees, actors, accepted, enforcement } = plan;
  const boundary = required.length === 0 ? "without a boundary" : `under its boundary (${enforcement})`;
  const width = widest(required);
  const others = actors.filter(({ kind }) => kind !== "sandbox");
  return [
    headline(colors.green(marks.holds), `It runs in ${sandbox}, ${boundary}.`, columns),
    ...required.map((capability) => {
      const by = guarantees.filter((one) => one.capability === capability).map((one) => one.by);
      const mark = by.length === 0 ? colors.yellow(marks.warns) : colors.green(marks.holds);
      return wrapped(`  ${mark} ${padded(capability, width)}  `, by.join(", ") || "accepted gap", columns);
    }),
    ...others.map(({ kind, name, site, assurance, subjects = [] }) => {
      const of = subjects.length === 0 ? "" : ` (${subjects.join(", ")})`;
      return wrapped("  · ", printable(`${kind} ${name}${of}: ${assurance}, on the ${site}`), columns);
    }),
    ...gapLines(accepted).map((line) =>
      wrapped(`${colors.yellow(marks.warns)} `, printable(`accepted: ${line}`), columns),
    ),
    ...warnings.map(({ path = "", message }) =>
      wrapped(`${colors.yellow(marks.warns)} `, printable(issueLine({ path, message })), columns),
    ),
  ];
}

function refusedLines({ error, failure }: FailedResult, columns: number): readonly string[] {
  const { code, gaps = [], issues = [] } = failure;
  const mark = colors.red(marks.lacks);
  const reasons = [...gapLines(gaps), ...issues.map(issueLine)];
  const what =
    code === "boundary_refused" ? "Its boundary can't be guaranteed here" : "The request can't be used";
  const text =
    reasons.length === 0
      ? error
      : `${what}: ${reasons.length === 1 ? "one reason" : `${reasons.length} reasons`}.`;
  return [
    headline(mark, text, columns),
    ...reasons.map((line) => wrapped(`  ${mark} `, printable(line), columns)),
  ];
}

function headline(mark: string, text: string, columns: number): string {
  return wrapped(`${mark} `, printable(text), columns);
}
