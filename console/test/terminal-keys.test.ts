import { describe, expect, it } from "vitest";
import { type PressedKey, sequenceOf } from "../src/parts/terminal-keys.js";

const press = (key: string, held: Partial<PressedKey> = {}): PressedKey => ({
  key,
  ctrlKey: false,
  altKey: false,
  shiftKey: false,
  metaKey: false,
  ...held,
});
const [ctrlKey, altKey, shiftKey] = [true, true, true];

describe("what a key sends to a terminal", () => {
  it.each([
    ["a cursor key", press("ArrowUp"), "\u001b[A"],
    ["one with Ctrl", press("ArrowLeft", { ctrlKey }), "\u001b[1;5D"],
    ["one with Shift and Alt", press("End", { shiftKey, altKey }), "\u001b[1;4F"],
    ["a page", press("PageDown"), "\u001b[6~"],
    ["a deletion of a word", press("Delete", { ctrlKey }), "\u001b[3;5~"],
    ["the first functions", press("F4"), "\u001bOS"],
    ["the others", press("F12", { shiftKey }), "\u001b[24;2~"],
    ["Enter", press("Enter"), "\r"],
    ["Backspace", press("Backspace"), "\u007f"],
    ["Tab", press("Tab"), "\t"],
    ["Tab backwards", press("Tab", { shiftKey }), "\u001b[Z"],
    ["Escape", press("Escape"), "\u001b"],
    ["an interrupt", press("c", { ctrlKey }), "\u0003"],
    ["the end of the terminal", press("]", { ctrlKey }), "\u001d"],
    ["nothing at all", press(" ", { ctrlKey }), "\0"],
    ["a letter with Alt", press("b", { altKey }), "\u001bb"],
    ["a letter, which the browser enters", press("a"), undefined],
    ["a letter of AltGr", press("@", { ctrlKey, altKey }), undefined],
    ["copying", press("C", { ctrlKey, shiftKey }), undefined],
    ["a shortcut of the system", press("c", { metaKey: true }), undefined],
    ["a key that only changes others", press("Shift", { shiftKey }), undefined],
    ["a digit with Ctrl", press("1", { ctrlKey }), undefined],
  ])("%s", (_name, pressed, sequence) => {
    expect(sequenceOf(pressed)).toBe(sequence);
  });

  it("is another one while a program has asked for the keypad's cursor keys", () => {
    expect(sequenceOf(press("ArrowUp"), { hasCursorKeys: true })).toBe("\u001bOA");
    expect(sequenceOf(press("ArrowUp", { ctrlKey }), { hasCursorKeys: true })).toBe("\u001b[1;5A");
  });

  it.each([
    ["Option and L of a German keyboard, which the browser enters", press("@", { altKey }), undefined],
    ["Option and Shift", press("\u2019", { altKey, shiftKey }), undefined],
    ["Option and a letter that stays one", press("b", { altKey }), "\u001bb"],
    ["Option and a cursor key", press("ArrowLeft", { altKey }), "\u001b[1;3D"],
    ["Option and Backspace", press("Backspace", { altKey }), "\u001b\u007f"],
  ])("is on a Mac, for %s", (_name, pressed, sequence) => {
    expect(sequenceOf(pressed, { isMac: true })).toBe(sequence);
  });

  it("has an escape before any character with Alt elsewhere", () => {
    expect(sequenceOf(press(".", { altKey }))).toBe("\u001b.");
  });
});
