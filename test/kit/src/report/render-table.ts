import type { CapabilityReport } from "../judge/judge-capability.js";
import type { AttackRow } from "../judge/verdict.js";
import type { VerifyReport } from "./run-attacks.js";

export interface RenderOptions {
  /** Most columns; details are truncated. Default 120. */
  readonly width?: number;
}

/** Verdicts on single attacks whose name alone doesn't say that nothing is wrong. */
const meanings = {
  unproven: "the attack needs rights that the control doesn't have either, so it shows nothing on this host",
  impossible: "this host has nothing of the kind",
  refused: "a run that needs this part is refused, so there is nothing to attack",
};

/** The report as a table for a terminal: attack by attack, with the control's outcome. */
export function renderVerifyTable(report: VerifyReport, options: RenderOptions = {}): string {
  const width = options.width ?? 120;
  const lines = [
    `${report.backend} on ${report.host.platform} ${report.host.release}, ${userOf(report)}`,
    `control: ${report.control}`,
    "",
  ];
  for (const capability of report.capabilities) lines.push(...linesOf(capability, width), "");
  const count = (assurance: string) =>
    report.capabilities.filter((one) => one.assurance === assurance).length;
  const failed = report.capabilities.length - count("proven") - count("refused");
  const seen = new Set(report.capabilities.flatMap((one) => one.attacks.map(({ verdict }) => verdict)));
  const explained = Object.entries(meanings).filter(([verdict]) => [...seen].some((one) => one === verdict));
  if (explained.length > 0) {
    lines.push(...explained.map(([verdict, meaning]) => cut(`${verdict}: ${meaning}`, width)), "");
  }
  lines.push(`${count("proven")} proven, ${count("refused")} refused, ${failed} failed`);
  return lines.join("\n");
}

function linesOf(report: CapabilityReport, width: number): readonly string[] {
  return [
    cut(`${report.assurance.toUpperCase().padEnd(9)} ${report.capability}  ${report.reason}`, width),
    ...(report.fix === undefined ? [] : [cut(`  fix: ${report.fix}`, width)]),
    ...report.allowances
      .filter(({ outcome }) => outcome.result !== "reached")
      .map(({ title, outcome }) =>
        cut(`  must work: ${title}: ${outcome.result} (${outcome.detail})`, width),
      ),
    ...report.attacks.map((row) => cut(rowLine(row), width)),
  ];
}

function rowLine({ id, verdict, without, control, guarded }: AttackRow): string {
  const name = id.slice(id.indexOf("/") + 1);
  const lacking = without === undefined ? "" : `without ${without} · `;
  return `  ${verdict.padEnd(10)} ${name.padEnd(28)} control ${control.result.padEnd(10)} guarded ${guarded.result.padEnd(10)} ${lacking}${guarded.detail}`;
}

function userOf({ host }: VerifyReport): string {
  return host.uid === 0 ? "as root" : "as an ordinary user";
}

function cut(line: string, width: number): string {
  const plain = line.replaceAll(/\p{Cc}/gu, " ").trimEnd();
  return plain.length <= width ? plain : `${plain.slice(0, width - 1)}…`;
}
