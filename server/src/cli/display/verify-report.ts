import type { AttackRow, CapabilityReport, Verdict, VerifyReport } from "@ambit/testkit";
import { printableLine } from "../../logging/printable.js";
import type { ReportOptions } from "./doctor-report.js";
import { colors, counted, cut, headline, marks, padded, sectionsOf, widest, wrapped } from "./layout.js";

/** Why a verdict on an attack shows nothing, though nothing is wrong. */
const meanings: Partial<Record<Verdict, string>> = {
  unproven: "needs rights that the control doesn't have either",
  impossible: "this host has nothing of the kind",
  refused: "a run that needs this part is refused",
  exempt: "breaks no promise of this sandbox",
};

const faults: readonly Verdict[] = ["escaped", "broken", "toothless"];

/** The verdict, a line for each capability, each reason once; every attack if `verbose`, else those that something is wrong with. Pure. */
export function verifyReport(report: VerifyReport, options: ReportOptions): string {
  const { columns } = options;
  const { backend, host, control } = report;
  const user = host.uid === 0 ? "as root" : "as an ordinary user";
  return sectionsOf([
    [verdict(report, columns)],
    report.capabilities.map((one) => capabilityLines(one, options)),
    reasonLines(report, columns),
    [
      wrapped("", `${backend} on ${host.platform} ${host.release}, ${user}; control: ${control}`, columns),
      ...(options.verbose ? [] : [colors.dim("`ambit verify --verbose` shows every attack.")]),
    ],
  ]);
}

function verdict({ backend, capabilities }: VerifyReport, columns: number): string {
  const count = (assurance: string) => capabilities.filter((one) => one.assurance === assurance).length;
  const proven = count("proven");
  const refused = count("refused");
  const failed = capabilities.length - proven - refused;
  const attacks = capabilities.flatMap((one) => one.attacks).filter((row) => row.verdict === "proven").length;
  const counts = [
    `${proven} of ${capabilities.length} capabilities proven`,
    ...(refused === 0 ? [] : [`${refused} refused`]),
    ...(failed === 0 ? [] : [`${failed} failed`]),
  ];
  if (failed > 0)
    return headline(false, `${backend} doesn't hold what it claims: ${counts.join(", ")}.`, columns);
  if (proven === 0)
    return headline(
      false,
      `${backend} guarantees nothing on this host, and refuses every boundary.`,
      columns,
    );
  const what = `${counted(attacks, "attack")} worked without the guard and failed in ${backend}`;
  return headline(true, `${what}: ${counts.join(", ")}.`, columns);
}

function capabilityLines(report: CapabilityReport, { columns, verbose }: ReportOptions): string {
  const { capability, assurance, attacks, allowances } = report;
  const mark = assurance === "proven" ? colors.green(marks.holds) : colors.red(marks.lacks);
  const head = wrapped(
    `  ${mark} ${padded(capability, capabilityWidth)}  ${assurance.padEnd(8)}  `,
    outcomeOf(report),
    columns,
  );
  const broken = allowances.filter(({ outcome }) => outcome.result !== "reached");
  const shown = attacks.filter(({ verdict: seen }) => verbose || faults.includes(seen));
  const width = widest(shown.map(nameOf));
  return [
    head,
    ...broken.map(({ title, outcome }) =>
      wrapped(
        `      ${marks.lacks} must work: `,
        printableLine(`${title}: ${outcome.result} (${outcome.detail})`),
        columns,
      ),
    ),
    ...shown.map((row) => attackLine(row, width, columns)),
  ].join("\n");
}

const capabilityWidth = "filesystem.workspace-only".length;

/** `16 attacks`; those that show nothing here are counted apart. */
function outcomeOf({ attacks }: CapabilityReport): string {
  if (attacks.length === 0) return "";
  const counts = new Map<Verdict, number>();
  for (const { verdict: seen } of attacks) counts.set(seen, (counts.get(seen) ?? 0) + 1);
  const { proven = 0, ...others } = Object.fromEntries(counts);
  const otherCounts = Object.entries(others).map(([name, count]) => `${count} ${name}`);
  return [`${counted(proven, "attack")} failed`, ...otherCounts].join(", ");
}

function nameOf({ id }: AttackRow): string {
  return id.slice(id.indexOf("/") + 1);
}

/** A fault is shown whole; of an attack that failed, what fits. */
function attackLine(row: AttackRow, width: number, columns: number): string {
  const { verdict: seen, without, control, guarded } = row;
  const name = padded(nameOf(row), width);
  const lacking = without === undefined ? "" : `without ${without} · `;
  if (faults.includes(seen)) {
    const detail = `${seen} (control: ${control.result}, ${control.detail}; guarded: ${guarded.result}, ${guarded.detail})`;
    return wrapped(
      `      ${colors.red(marks.lacks)} ${name}  `,
      printableLine(`${lacking}${detail}`),
      columns,
    );
  }
  const mark = seen === "proven" ? colors.green(marks.holds) : colors.dim("–");
  const meaning = seen === "proven" ? "" : `${seen} · `;
  const prefix = `      ${mark} ${name}  `;
  return (
    prefix +
    cut(printableLine(`${lacking}${meaning}${guarded.detail}`), columns - width - "        ".length - 2)
  );
}

/** Each reason once, however many capabilities it concerns; and what the words of the report mean. */
function reasonLines({ capabilities }: VerifyReport, columns: number): readonly string[] {
  const byReason = new Map<string, { readonly report: CapabilityReport; readonly names: string[] }>();
  for (const report of capabilities) {
    if (report.assurance === "proven") continue;
    const key = JSON.stringify([report.assurance, report.reason, report.fix]);
    const same = byReason.get(key) ?? { report, names: [] };
    same.names.push(report.capability);
    byReason.set(key, same);
  }
  const seen = new Set(capabilities.flatMap(({ attacks }) => attacks.map((row) => row.verdict)));
  const explained = Object.entries(meanings).filter(([word]) => [...seen].some((one) => one === word));
  return [
    ...[...byReason.values()].map(({ report: { assurance, reason, fix }, names }) => {
      const what =
        names.length === capabilities.length && names.length > 1 ? `all ${names.length}` : names.join(", ");
      const prefix = `${colors.red(marks.lacks)} `;
      return [
        wrapped(prefix, printableLine(`${assurance}: ${what}: ${reason.replaceAll("\n", "; ")}`), columns),
        ...(fix === undefined ? [] : [wrapped(`    ${colors.bold("fix")}  `, printableLine(fix), columns)]),
      ].join("\n");
    }),
    ...explained.map(([word, meaning]) => wrapped("  ", `${word}: ${meaning}`, columns)),
  ];
}
