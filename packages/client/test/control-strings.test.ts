import emulators from "@xterm/headless";
import { describe, expect, it } from "vitest";
import { ControlStringFilter } from "../src/control-strings.js";

const esc = "\u001b";

/** What a real emulator does with an output, besides showing it. */
async function emulated(printed: string) {
  const terminal = new emulators.Terminal({ allowProposedApi: true });
  const obeyed: string[] = [];
  const { parser } = terminal;
  for (const code of [0, 2, 4, 8, 52])
    parser.registerOscHandler(code, (data) => obeyed.push(`${code} ${data}`) > 0);
  parser.registerDcsHandler({ intermediates: "+", final: "q" }, (data) => obeyed.push(`DCS ${data}`) > 0);
  await new Promise<void>((resolve) => terminal.write(printed, resolve));
  return { obeyed, shown: terminal.buffer.active.getLine(0)?.translateToString(true) };
}

/** Each character comes alone, as a slow connection brings them. */
const filtered = (printed: string) => {
  const filter = new ControlStringFilter();
  return [...printed].map((character) => filter.pass(character)).join("");
};

describe("what a sandbox prints at its user's terminal", () => {
  it.each([
    ["a title", `${esc}]0;forged\u0007text`, "0 forged"],
    ["a title with ST", `${esc}]2;forged${esc}\\text`, "2 forged"],
    ["a title in C1", "\u009d0;forged\u009ctext", "0 forged"],
    ["the clipboard", `${esc}]52;c;cm0gLXJmIC8=\u0007text`, "52 c;cm0gLXJmIC8="],
    ["a palette that hides", `${esc}]4;1;rgb:00/00/00\u0007text`, "4 1;rgb:00/00/00"],
    ["a link", `${esc}]8;;https://evil.example\u0007text${esc}]8;;\u0007`, "8 ;https://evil.example"],
    ["a question to the device", `${esc}P+q544e${esc}\\text`, "DCS 544e"],
    ["an escape before it", `${esc}${esc}]0;forged\u0007text`, "0 forged"],
    [
      "two escapes and a string before it",
      `${esc}${esc}Xa\u0007]0;a\u0007${esc}]0;forged\u0007text`,
      "0 forged",
    ],
    ["a control character in it", `${esc}\u0000]0;forged\u0007text`, "0 forged"],
    ["a control character after a string", `${esc}Xa${esc}\u0000]0;forged\u0007text`, "0 forged"],
    ["one in another", `${esc}Xmore${esc}]0;forged\u0007text`, "0 forged"],
  ])("%s works in an emulator, and not behind the filter", async (_what, printed, control) => {
    expect((await emulated(printed)).obeyed).toContain(control);
    const { obeyed, shown } = await emulated(filtered(printed));
    expect([obeyed, shown]).toEqual([[], expect.stringMatching(/text$/)]);
  });

  it.each([
    ["colours and movements", `${esc}[31mred${esc}[0m${esc}[2K\r${esc}[?25hé😀`],
    ["an escape of one character", `${esc}7a${esc}8${esc}(B${esc}=`],
  ])("%s stay", (_what, printed) => {
    expect(filtered(printed)).toBe(printed);
  });

  it("a string that is cancelled, or cut by a sequence, hides nothing of what follows", () => {
    expect(filtered(`${esc}]0;a\u0018b`)).toBe("b");
    expect(filtered(`${esc}]0;a${esc}[31mb`)).toBe(`${esc}[31mb`);
  });
});
