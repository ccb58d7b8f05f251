import { printableLine } from "../../logging/printable.js";
import { colors } from "./colors.js";

/** Columns as wide as their widest cell, except for the last one. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .map(printableLine)
      .join("  ");
  return `${[colors.bold(line(head)), ...rows.map(line)].join("\n")}\n`;
}
