import emulators from "@xterm/headless";
import { describe, expect, it } from "vitest";
import { terminalLines, textOf } from "../src/parts/terminal-text.js";

const esc = "\u001b";
const shown = (printed: string) => terminalLines(printed).map(({ spans }) => textOf(spans));
const only = (printed: string) => terminalLines(printed)[0]?.spans;

describe("what a program printed", () => {
  it.each([
    [
      "colours",
      `${esc}[31mred${esc}[0m plain`,
      [
        ["red", { colour: "bad" }],
        [" plain", {}],
      ],
    ],
    ["bright and bold", `${esc}[1;92mok`, [["ok", { isBold: true, colour: "good" }]]],
    [
      "a colour of 256",
      `${esc}[38;5;33mblue${esc}[39m.`,
      [
        ["blue", { colour: "accent" }],
        [".", {}],
      ],
    ],
    ["red, green and blue", `${esc}[38;2;200;40;40mred`, [["red", { colour: "bad" }]]],
    [
      "the end of bold",
      `${esc}[1;4ma${esc}[22mb`,
      [
        ["a", { isBold: true, isUnderlined: true }],
        ["b", { isUnderlined: true }],
      ],
    ],
    [
      "a manual's bold",
      "N\u0008NO_\u0008P",
      [
        ["N", { isBold: true }],
        ["O", {}],
        ["P", { isUnderlined: true }],
      ],
    ],
    ["a background", `${esc}[41;30mtext`, [["text", {}]]],
  ])("has %s", (_what, printed, expected) => {
    expect(only(printed)?.map(({ text, style }) => [text, style])).toEqual(expected);
  });

  it("has its lines, and keeps a style from one to the next", () => {
    expect(shown("a\nb\r\n\nc")).toEqual(["a", "b", "", "c"]);
    expect(terminalLines(`${esc}[32ma\nb`)[1]?.spans[0]?.style).toEqual({ colour: "good" });
  });

  it("shows a progress at its end, with every state of it", () => {
    const [line] = terminalLines(`10%\r50%\r${esc}[K100%\n`);
    expect(textOf(line?.spans ?? [])).toBe("100%");
    expect(line?.replaced).toEqual(["10%", "50%"]);
  });
});

/** Each would hide or forge what is read in a terminal: `hidden` is what it hides there. */
const attacks: readonly (readonly [what: string, printed: string, hidden: string])[] = [
  ["a return", "rm -rf /\recho hello", "rm -rf /"],
  ["concealed text", `${esc}[8mrm -rf /${esc}[28m`, "rm -rf /"],
  ["black on black", `${esc}[30;40mrm -rf /`, "rm -rf /"],
  ["the ground's own colour", `${esc}[38;2;255;255;255mrm -rf /`, "rm -rf /"],
  ["an erased line", `rm -rf /${esc}[2K${esc}[Gok`, "rm -rf /"],
  ["an erased screen", `rm -rf /\n${esc}[2J${esc}[Hok`, "rm -rf /"],
  ["a cursor that goes up", `rm -rf /\n${esc}[1Aok      `, "rm -rf /"],
  ["backspaces", "rm\u0008\u0008ls", "rm"],
  ["another screen", `${esc}[?1049hrm -rf /${esc}[?1049l`, "rm -rf /"],
  ["a title that never ends", `${esc}]0;rm -rf /\nok`, "rm -rf /"],
  ["reordered text", "\u202erm -rf /", "rm -rf /"],
];

/** A real emulator after that output: its control. */
async function emulated(printed: string) {
  const terminal = new emulators.Terminal({ allowProposedApi: true, convertEol: true });
  const obeyed: string[] = [];
  terminal.onTitleChange((title) => obeyed.push(`title ${title}`));
  terminal.onData((answer) => obeyed.push(`answer ${answer}`));
  for (const [code, what] of [
    [8, "link"],
    [52, "clipboard"],
  ] as const)
    terminal.parser.registerOscHandler(code, (data) => obeyed.push(`${what} ${data}`) > 0);
  await new Promise<void>((resolve) => terminal.write(printed, resolve));
  return { terminal, obeyed };
}

/** What a person sees there, on a white ground. */
function seenIn({ buffer, rows, cols }: Awaited<ReturnType<typeof emulated>>["terminal"]): string {
  const cells = (row: number) =>
    Array.from({ length: cols }, (_, column) => buffer.active.getLine(row)?.getCell(column)).map((cell) => {
      if (cell === undefined || cell.isInvisible() !== 0) return " ";
      const isOnItself = cell.isFgPalette() && cell.isBgPalette() && cell.getFgColor() === cell.getBgColor();
      const isGround = cell.isFgRGB() && cell.isBgDefault() && cell.getFgColor() === 0xffffff;
      return isOnItself || isGround ? " " : cell.getChars() || " ";
    });
  return Array.from({ length: rows }, (_, row) => cells(row).join("")).join("\n");
}

describe("an attack with", () => {
  it.each(attacks)("%s misleads in an emulator: the control", async (_what, printed, hidden) => {
    const seen = seenIn((await emulated(printed)).terminal);
    expect(!seen.includes(hidden) || seen.includes("\u202e")).toBe(true);
  });

  it.each(attacks)("%s hides nothing", (_what, printed, hidden) => {
    const lines = terminalLines(printed);
    const all = lines.flatMap(({ spans, replaced }) => [...replaced, textOf(spans)]).join("\n");
    expect(all).toContain(hidden);
    for (const { style } of lines.flatMap(({ spans }) => spans)) expect(style).toEqual({});
  });

  it.each([
    ["a title", `${esc}]0;another title\u0007text`, "text", ["title another title"]],
    [
      "a link that says another address",
      `${esc}]8;;https://evil.example\u0007https://bank.example${esc}]8;;\u0007`,
      "https://bank.example",
      ["link ;https://evil.example", "link ;"],
    ],
    ["the clipboard", `${esc}]52;c;cm0gLXJmIC8=${esc}\\text`, "text", ["clipboard c;cm0gLXJmIC8="]],
    [
      "a device's answer",
      `${esc}[6n${esc}[c${esc}P+q544e${esc}\\text`,
      "text",
      [`answer ${esc}[1;1R`, `answer ${esc}[?1;2c`],
    ],
  ])("%s does nothing, and isn't shown", async (_what, printed, expected, control) => {
    expect((await emulated(printed)).obeyed).toEqual(control);
    expect(shown(printed)).toEqual([expected]);
  });

  it("a text without an end costs no more than its length", () => {
    const hostile = `${esc}]0;`.repeat(20_000);
    expect(shown(hostile).join("")).toContain("\\u{1b}]0;");
    expect(shown("\r".repeat(200_000))).toEqual([]);
    const [line] = terminalLines(Array.from({ length: 1_000 }, (_, index) => `${index}\r`).join(""));
    expect(line?.replaced.length).toBe(100);
    // Beyond those that are kept, what comes stays.
    expect(textOf(line?.spans ?? [])).toContain("999");
  });
});
