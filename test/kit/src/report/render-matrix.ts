import { type Attack, attacks } from "@ambit/attacks";
import { capabilities, promises } from "@ambit/core/plugin";
import type { VerifyReport } from "./run-attacks.js";

/** One host on which the attacks ran, for the head of its column. */
export interface MatrixColumn {
  /** "Debian 12, as root". */
  readonly title: string;
  readonly report: VerifyReport;
}

/** What is enforced on which host, as Markdown: capabilities by hosts, then every attack with its verdict. */
export function renderEnforcementMatrix(columns: readonly MatrixColumn[]): string {
  const head = ["capability", ...columns.map(({ title, report }) => `${report.backend}: ${title}`)];
  const standings = capabilities.map((capability) => [
    `\`${capability}\``,
    ...columns.map(({ report }) => standingIn(report, capability)),
  ]);
  const details = capabilities.map((capability) =>
    [
      `### \`${capability}\``,
      "",
      promises[capability],
      "",
      table(
        ["attack", "works without", ...head.slice(1)],
        attacks[capability].map((attack: Attack) => [
          attack.title,
          lackingIn(columns, attack),
          ...columns.map(({ report }) => verdictIn(report, attack.id)),
        ]),
      ),
    ].join("\n"),
  );
  return [table(head, standings), "", ...details].join("\n\n").replaceAll(/\n{3,}/g, "\n\n");
}

function standingIn({ capabilities: reports }: VerifyReport, capability: string): string {
  const report = reports.find((one) => one.capability === capability);
  if (report === undefined) return "not tested";
  return report.assurance === "refused" ? `refused: ${report.reason}` : report.assurance;
}

function verdictIn({ capabilities: reports }: VerifyReport, id: string): string {
  const row = reports.flatMap(({ attacks: rows }) => rows).find((one) => one.id === id);
  return row === undefined ? "–" : row.verdict;
}

/** The removed part in the control in which the attack worked, from the first host that has one. */
function lackingIn(columns: readonly MatrixColumn[], { id, needs }: Pick<Attack, "id" | "needs">): string {
  const rows = columns.flatMap(({ report }) => report.capabilities.flatMap(({ attacks: made }) => made));
  const row = rows.find((one) => one.id === id && one.control.result === "reached");
  if (row === undefined) return needs === undefined ? "–" : `– (needs ${needs})`;
  return row.without ?? "any guard";
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll(/\s+/g, " ");
}
