import stringWidth from "string-width";
import wrapAnsi from "wrap-ansi";

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
  const own = /^ */.exec(line)?.[0] ?? "";
  const indent = own.length > space / 2 ? "" : own;
  const text = line.slice(own.length);
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
