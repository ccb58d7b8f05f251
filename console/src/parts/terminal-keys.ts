/** The part of a keyboard event that says which key was pressed. */
export interface PressedKey {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
  readonly metaKey: boolean;
}

const escapeCharacter = "\u001b";

/** Keys that end with a letter, which is sent otherwise while a program asks for it (DECCKM). */
const letters: Readonly<Record<string, string>> = {
  ArrowUp: "A",
  ArrowDown: "B",
  ArrowRight: "C",
  ArrowLeft: "D",
  End: "F",
  Home: "H",
};

const numbers: Readonly<Record<string, number>> = {
  Insert: 2,
  Delete: 3,
  PageUp: 5,
  PageDown: 6,
  F5: 15,
  F6: 17,
  F7: 18,
  F8: 19,
  F9: 20,
  F10: 21,
  F11: 23,
  F12: 24,
};

const functions: Readonly<Record<string, string>> = { F1: "P", F2: "Q", F3: "R", F4: "S" };

/**
 * What a terminal sends for a key, as xterm does. Undefined for one whose text the browser enters by itself, and for the browser's
 * own shortcuts. Pure.
 *
 * @param hasCursorKeys whether a program has asked for the keypad's own cursor keys
 * @param isMac whether Option, which is Alt elsewhere, enters the characters that a keyboard has no key for
 */
export function sequenceOf(
  pressed: PressedKey,
  { hasCursorKeys = false, isMac = false } = {},
): string | undefined {
  const { key, ctrlKey, altKey, shiftKey, metaKey } = pressed;
  if (metaKey) return undefined;
  const modifiers = 1 + (shiftKey ? 1 : 0) + (altKey ? 2 : 0) + (ctrlKey ? 4 : 0);
  const isPlain = modifiers === 1;
  const letter = letters[key];
  if (letter !== undefined) {
    if (!isPlain) return `${escapeCharacter}[1;${modifiers}${letter}`;
    return `${escapeCharacter}${hasCursorKeys ? "O" : "["}${letter}`;
  }
  const number = numbers[key];
  if (number !== undefined) return `${escapeCharacter}[${number}${isPlain ? "" : `;${modifiers}`}~`;
  const name = functions[key];
  if (name !== undefined)
    return isPlain ? `${escapeCharacter}O${name}` : `${escapeCharacter}[1;${modifiers}${name}`;
  const prefix = altKey ? escapeCharacter : "";
  switch (key) {
    case "Enter":
      return `${prefix}\r`;
    case "Backspace":
      return `${prefix}${ctrlKey ? "\b" : "\u007f"}`;
    case "Tab":
      return shiftKey ? `${escapeCharacter}[Z` : `${prefix}\t`;
    case "Escape":
      return `${prefix}${escapeCharacter}`;
    default:
      return [...key].length === 1 ? characterOf(pressed, prefix, isMac) : undefined;
  }
}

function characterOf(
  { key, ctrlKey, altKey, shiftKey }: PressedKey,
  prefix: string,
  isMac: boolean,
): string | undefined {
  // AltGr enters a character, and both keys together are how browsers report it.
  if (ctrlKey && altKey) return undefined;
  // With a letter, no layout has made another character of it.
  if (altKey) return isMac && !/[a-z]/i.test(key) ? undefined : `${prefix}${key}`;
  // With both, copy and paste.
  if (!ctrlKey || shiftKey) return undefined;
  if (key === " ") return "\0";
  const code = key.toUpperCase().charCodeAt(0);
  return code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : undefined;
}
