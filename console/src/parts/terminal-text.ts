import { exactText } from "./words.js";

/** How a part of a line looks. Colours are the page's own few, so that none hides text on its ground. */
export interface TerminalStyle {
  readonly colour?: TerminalColour;
  readonly isBold?: true;
  readonly isDim?: true;
  readonly isItalic?: true;
  readonly isUnderlined?: true;
  readonly isStruck?: true;
  readonly isInverse?: true;
  readonly isCursor?: true;
}

export type TerminalColour = "bad" | "good" | "wait" | "accent";

export interface TerminalSpan {
  readonly text: string;
  readonly style: TerminalStyle;
}

export interface TerminalLine {
  readonly spans: readonly TerminalSpan[];
  /** What a carriage return replaced, the oldest first: a progress, or what someone wants to hide. */
  readonly replaced: readonly string[];
}

/** States of one line that are kept. */
const maxReplaced = 100;

/**
 * What a program printed, line by line, as a log: with the colours of a terminal, and with everything in it. What would move the
 * cursor, erase text, set a title, make a link or reach the clipboard has no effect, and characters that hide or reorder text are
 * written out. Pure.
 */
export function terminalLines(printed: string): readonly TerminalLine[] {
  const lines: TerminalLine[] = [];
  let spans: TerminalSpan[] = [];
  let replaced: string[] = [];
  let style: TerminalStyle = {};
  const add = (text: string, look = style) => {
    if (text !== "") spans.push({ text, style: look });
  };
  const end = () => {
    lines.push({ spans, replaced });
    spans = [];
    replaced = [];
  };
  for (const [piece, newline, back, over, , sequence] of printed.matchAll(pieces)) {
    if (newline !== undefined) end();
    else if (back !== undefined) {
      if (spans.length > 0 && replaced.length < maxReplaced) replaced.push(textOf(spans));
      // Beyond that, what is there stays and grows.
      if (replaced.length < maxReplaced) spans = [];
    } else if (over !== undefined) {
      const [under = "", , text = ""] = [...over];
      add(text, { ...style, ...(under === "_" ? { isUnderlined: true } : { isBold: true }) });
    } else if (sequence === undefined) add(exactText(piece));
    else if (/^.\[[\d;:]*m$/.test(sequence)) style = styled(style, sequence);
    else if (/^.\[\d{0,3}C$/.test(sequence))
      add(" ".repeat(Math.min(80, Number(sequence.slice(2, -1)) || 1)));
  }
  if (spans.length > 0 || replaced.length > 0) end();
  return lines;
}

export const textOf = (spans: readonly TerminalSpan[]) => spans.map(({ text }) => text).join("");

/** A text ends within so many characters, or a terminal would swallow what follows: then it isn't one, and is written out. */
const string = "[^\\u0007\\u001b\\n]{0,4096}(?:\\u0007|\\u001b\\\\)";

/** A line's end · a return · a character printed over itself · an escape · text · a lone control character. */
const pieces = new RegExp(
  [
    "(\\r*\\n)",
    "(\\r+)",
    "(_\\u0008[^\\p{C}]|([^\\p{C}])\\u0008\\4)",
    `(\\u001b\\[[0-?]*[ -/]*[@-~]|\\u001b[\\]P^_X]${string}|\\u001b[()*+][0-9A-Za-z]|\\u001b[=>78cDEHM])`,
    "(?:(?!.\\u0008)[^\\r\\n\\u001b])+",
    "[^]",
  ].join("|"),
  "gu",
);

/** The style after a sequence of SGR. */
function styled(before: TerminalStyle, sequence: string): TerminalStyle {
  let style: TerminalStyle = before;
  const codes = sequence
    .slice(2, -1)
    .split(/[;:]/)
    .map((code) => Number(code));
  while (codes.length > 0) {
    const code = codes.shift() ?? 0;
    const { colour: _colour, ...plain } = style;
    if (code === 38 || code === 48) {
      const colour = colourOf(codes);
      if (code === 38) style = colour === undefined ? plain : { ...plain, colour };
    } else if (code === 0) style = {};
    else if (code === 39) style = plain;
    else if (code in colours) {
      const colour = colours[code];
      style = colour === undefined ? plain : { ...plain, colour };
    } else if (code in attributes) style = { ...style, ...attributes[code] };
    else if (code === 22) style = without(style, "isBold", "isDim");
    else if (code === 23) style = without(style, "isItalic");
    else if (code === 24) style = without(style, "isUnderlined");
    else if (code === 27) style = without(style, "isInverse");
    else if (code === 29) style = without(style, "isStruck");
    // Others, such as one that conceals, have no effect.
  }
  return style;
}

function without(style: TerminalStyle, ...names: readonly (keyof TerminalStyle)[]): TerminalStyle {
  return Object.fromEntries(Object.entries(style).filter(([name]) => !names.some((other) => other === name)));
}

const attributes: Readonly<Record<number, TerminalStyle>> = {
  1: { isBold: true },
  2: { isDim: true },
  3: { isItalic: true },
  4: { isUnderlined: true },
  7: { isInverse: true },
  9: { isStruck: true },
};

/** Black, red, green, yellow, blue, magenta, cyan, white: undefined is the text's own. */
const basic: readonly (TerminalColour | undefined)[] = [
  undefined,
  "bad",
  "good",
  "wait",
  "accent",
  "accent",
  "accent",
  undefined,
];

const colours: Readonly<Record<number, TerminalColour | undefined>> = Object.fromEntries(
  basic.flatMap((colour, index) => [
    [30 + index, colour],
    [90 + index, colour],
  ]),
);

/** Takes the codes of a colour of 256 (5 and its index), or of red, green and blue (2 and each), as SGR 38 has them. */
export function colourOf(codes: number[]): TerminalColour | undefined {
  const form = codes.shift();
  if (form === 5) {
    const index = codes.shift() ?? 0;
    if (index < 16) return basic[index % 8];
    if (index >= 232) return undefined;
    const cube = index - 16;
    return nearest(Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51);
  }
  if (form !== 2) return undefined;
  const [red = 0, green = 0, blue = 0] = codes.splice(0, 3);
  return nearest(red, green, blue);
}

function nearest(red: number, green: number, blue: number): TerminalColour | undefined {
  const most = Math.max(red, green, blue);
  if (most - Math.min(red, green, blue) < 48) return undefined;
  if (blue === most) return "accent";
  const isYellow = Math.min(red, green) > 0.6 * most;
  if (isYellow) return "wait";
  return red === most ? "bad" : "good";
}
