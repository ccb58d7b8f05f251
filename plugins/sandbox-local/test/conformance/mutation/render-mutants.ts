import type { MutantRow } from "./run-mutants.ts";

const detectedBy = {
  start: "no jail starts",
  evidence: "the check of each new jail",
  probe: "the probe",
} as const;

/** The rows as Markdown, in one table per kind of part. */
export function renderMutants(rows: readonly MutantRow[], nameOf: (name: string) => string): string {
  return (["command line", "system call filter"] as const)
    .map((kind) => {
      const lines = rows.filter((row) => row.kind === kind).map((row) => line(row, nameOf));
      return [
        `## Parts of the ${kind}`,
        "",
        "| removed part | detected by | attack that then works |",
        "|---|---|---|",
        ...lines,
      ].join("\n");
    })
    .join("\n\n");
}

function line({ name, detected, attack }: MutantRow, nameOf: (name: string) => string): string {
  const detection =
    detected === undefined ? "–" : `${detectedBy[detected.by]}${removedToo(detected.alsoRemoved)}`;
  const others = [...(attack?.alsoRemoved ?? []), ...(attack?.asRoot === true ? ["the separate user"] : [])];
  const works = attack?.with.result === "blocked" && attack.without.result === "reached";
  const made = attack === undefined || !works ? "–" : `\`${attack.attack}\`${removedToo(others.join(", "))}`;
  return `| \`${nameOf(name)}\` | ${detection} | ${made} |`;
}

const removedToo = (alsoRemoved: string | undefined) =>
  alsoRemoved === undefined || alsoRemoved === "" ? "" : `; ${alsoRemoved} removed as well`;
