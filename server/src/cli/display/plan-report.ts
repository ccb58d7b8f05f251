import { type FailedResult, gapLines, issueLine, type PlanResponse } from "@ambit/core";
import { printable } from "../../logging/printable.js";
import { colors } from "./colors.js";
import { marks, padded, widest, wrapped } from "./layout.js";

/** A plan for a person: the verdict, what is required and who guarantees it, or every gap and issue. Pure. */
export function planReport(response: PlanResponse | FailedResult, columns: number): string {
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
