import { printableLine } from "../../logging/printable.js";
import { colors, columnsOf, cut, padded, widest } from "./layout.js";

/** Columns that a cell keeps where the table is wider than the terminal. */
const narrowest = 8;

const gap = "  ";

export interface TableOptions {
  /** Columns of the terminal. Default: those of stdout. */
  readonly columns?: number;
  /** Titles of columns that may be cut where the table doesn't fit, the first one first. Default: the last column. */
  readonly shrinks?: readonly string[];
}

/** Columns as wide as their widest cell. One that would be empty isn't shown; where the terminal is narrower, cells are cut. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  { columns = columnsOf(process.stdout), shrinks = head.slice(-1) }: TableOptions = {},
): string {
  const shown = head.map((_, at) => rows.length === 0 || rows.some((row) => (row[at] ?? "") !== ""));
  const lines = [head, ...rows].map((row) =>
    head.map((_, at) => printableLine(row[at] ?? "")).filter((_, at) => shown[at]),
  );
  const titles = head.filter((_, at) => shown[at]);
  const widths = titles.map((_, at) => widest(lines.map((cells) => cells[at] ?? "")));
  for (const title of shrinks) {
    const at = titles.indexOf(title);
    const width = widths[at];
    if (width === undefined) continue;
    const excess = widths.reduce((sum, one) => sum + one, gap.length * (titles.length - 1)) - columns;
    if (excess > 0) widths[at] = Math.max(Math.min(narrowest, width), width - excess);
  }
  const [first = "", ...others] = lines.map((cells) =>
    cells
      .map((cell, at) => padded(cut(cell, widths[at] ?? 0), widths[at] ?? 0))
      .join(gap)
      .trimEnd(),
  );
  return `${[colors.bold(first), ...others].join("\n")}\n`;
}
