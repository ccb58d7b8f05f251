import type { MutantRow } from "./run-mutants.js";

const seenBy = {
  start: "no jail starts without it",
  evidence: "a jail is looked at before anything starts in it, and refused",
  probe: "the probe",
} as const;

/** The rows as Markdown, one table for each place that parts were taken out of. */
export function renderMutants(rows: readonly MutantRow[], nameOf: (name: string) => string): string {
  return (["command line", "system call filter"] as const)
    .map((kind) => {
      const lines = rows.filter((row) => row.kind === kind).map((row) => line(row, nameOf));
      return [
        `## Parts of the ${kind}`,
        "",
        "| taken out | seen by | attack that works then |",
        "|---|---|---|",
        ...lines,
      ].join("\n");
    })
    .join("\n\n");
}

function line({ name, seen, attack }: MutantRow, nameOf: (name: string) => string): string {
  const sighting = seen === undefined ? "–" : `${seenBy[seen.by]}${withoutToo(seen.besides)}`;
  const others = [...(attack?.besides ?? []), ...(attack?.asRoot === true ? ["a user of its own"] : [])];
  const works = attack?.with.result === "blocked" && attack.without.result === "reached";
  const made = attack === undefined || !works ? "–" : `\`${attack.attack}\`${withoutToo(others.join(", "))}`;
  return `| \`${nameOf(name)}\` | ${sighting} | ${made} |`;
}

const withoutToo = (besides: string | undefined) =>
  besides === undefined || besides === "" ? "" : `, without ${besides} too`;
