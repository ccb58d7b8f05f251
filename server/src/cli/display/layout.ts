import picocolors from "picocolors";
import stringWidth from "string-width";
import wrapAnsi from "wrap-ansi";

/** Colours only for a terminal: a file, a pipe or a build log gets none, even if the environment says CI. */
export const colors = picocolors.createColors(picocolors.isColorSupported && process.stdout.isTTY === true);

/** Columns below which a line isn't made narrower: a word or two must fit. */
const narrowest = 20;

/** Marks at the beginning of a line: what holds, what doesn't, what to look at. */
export const marks = { holds: "✔", lacks: "✖", warns: "!" } as const;

/** Columns that a line may have: those of a terminal; without one, lines aren't wrapped, so that programs can search them. */
export function columnsOf({ isTTY, columns }: Pick<NodeJS.WriteStream, "isTTY" | "columns">): number {
  return isTTY === true && columns > 0 ? columns : Number.POSITIVE_INFINITY;
}

/**
 * A text behind a prefix, wrapped at words. Continued lines are indented by the prefix's width and by their own line's
 * indentation. Pure.
 */
export function wrapped(prefix: string, text: string, columns: number): string {
  const indent = stringWidth(prefix);
  const space = Math.max(columns - indent, narrowest);
  const lines = text.split("\n").flatMap((line) => wrappedLine(line, space));
  return lines.map((line, at) => `${at === 0 ? prefix : " ".repeat(indent)}${line}`.trimEnd()).join("\n");
}

function wrappedLine(line: string, space: number): readonly string[] {
  if (stringWidth(line) <= space) return [line];
  const indentation = /^ */.exec(line)?.[0] ?? "";
  const indent = indentation.length > space / 2 ? "" : indentation;
  const text = line.slice(indentation.length);
  return wrapAnsi(text, space - indent.length, { hard: true })
    .split("\n")
    .map((one) => indent + one);
}

/** The text with spaces up to the number of columns. Pure. */
export function padded(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - stringWidth(text)));
}

/** The text cut to the number of columns, with an ellipsis where something is missing. Pure. */
export function cut(text: string, columns: number): string {
  if (stringWidth(text) <= columns) return text;
  let width = 0;
  let shown = "";
  for (const character of text) {
    width += stringWidth(character);
    if (width > columns - 1) break;
    shown += character;
  }
  return `${shown}…`;
}

/** `1 token`, `2,400 tokens`. Pure. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** The columns of the widest text. Pure. */
export function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map((text) => stringWidth(text)));
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** Milliseconds as a person says them: `0.42 s`, `12 s`, `3 min`, `5 h`, `2 d`. Pure. */
export function duration(ms: number): string {
  if (ms < 10_000) return `${(Math.max(ms, 0) / 1_000).toFixed(2)} s`;
  const [unit, size] = units.find(([, one]) => ms >= one) ?? ["s", 1_000];
  return `${Math.floor(ms / size)} ${unit}`;
}

/** How long ago it was: `now`, `12 s ago`, `3 min ago`. Pure. */
export function age(ms: number): string {
  return ms < 1_000 ? "now" : `${ms < 10_000 ? `${Math.floor(ms / 1_000)} s` : duration(ms)} ago`;
}

/** The first line of a report, in bold: what holds, or doesn't. Pure. */
export function headline(holds: boolean, text: string, columns: number): string {
  const mark = holds ? colors.green(marks.holds) : colors.red(marks.lacks);
  return wrapped(`${mark} `, text, columns)
    .split("\n")
    .map((line) => colors.bold(line))
    .join("\n");
}

/** The sections of a report that have lines, with a blank line between them. Pure. */
export function sectionsOf(sections: readonly (readonly string[])[]): string {
  const texts = sections.filter(({ length }) => length > 0).map((lines) => lines.join("\n"));
  return `${texts.join("\n\n")}\n`;
}
