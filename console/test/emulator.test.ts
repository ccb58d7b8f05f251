import { expect, it } from "vitest";
import { Emulator } from "../src/parts/emulator.js";
import { textOf } from "../src/parts/terminal-text.js";

const esc = "\u001b";

/** An emulator that was given these texts, with the lines of its screen and its replies. */
async function shown(...printed: readonly string[]) {
  const replies: string[] = [];
  const emulator = new Emulator({ columns: 20, rows: 4 }, (reply) => replies.push(reply));
  const drawn = new Promise<void>((resolve) => emulator.subscribe(resolve));
  for (const text of printed) await emulator.write(new TextEncoder().encode(text));
  await drawn;
  return { emulator, replies, lines: emulator.lines(), texts: emulator.lines().map(textOf) };
}

it("shows the screen, with what was scrolled out of it", async () => {
  const { texts } = await shown("one\r\ntwo\r\nthree\r\nfour\r\nfive");
  expect(texts).toEqual(["one", "two", "three", "four", "five "]);
});

it("shows what a program has moved, erased and coloured, and where its cursor is", async () => {
  const { lines } = await shown(`gone${esc}[2K\r${esc}[31mred${esc}[0m ${esc}[7mbar${esc}[0m`);
  expect(lines[0]).toEqual([
    { text: "red", style: { colour: "bad" } },
    { text: " ", style: {} },
    { text: "bar", style: { isInverse: true } },
    { text: " ", style: { isCursor: true } },
    { text: "", style: {} },
  ]);
});

it("writes out what hides or reorders text, and replies to a program", async () => {
  const { texts, replies } = await shown(`a\u202eb${esc}[8mhidden${esc}[0m${esc}[6n`);
  expect(texts[0]).toContain("hidden");
  expect(texts[0]).not.toContain("\u202e");
  expect(replies).toEqual([`${esc}[1;${9}R`]);
});

it("takes a character that comes in two pieces for one", async () => {
  const emulator = new Emulator({ columns: 20, rows: 2 }, () => undefined);
  const drawn = new Promise<void>((resolve) => emulator.subscribe(resolve));
  const [first, ...others] = new TextEncoder().encode("é");
  await emulator.write(Uint8Array.of(first ?? 0));
  await emulator.write(Uint8Array.from(others));
  await drawn;
  expect(textOf(emulator.lines()[0] ?? [])).toMatch(/^é/);
});

it("marks what is pasted where a program asks for it, and nothing in it ends the mark", async () => {
  const { emulator } = await shown(`${esc}[?2004h`);
  expect(emulator.pasted(`ls\n${esc}[201~rm`)).toBe(`${esc}[200~ls\r[201~rm${esc}[201~`);
  const { emulator: plain } = await shown("$ ");
  expect(plain.pasted("ls\r\n")).toBe("ls\r");
});
