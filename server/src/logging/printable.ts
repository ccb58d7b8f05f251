/**
 * A text that is safe to write to a terminal: an agent's output must not move the cursor, retitle the window or
 * respond as if it were the user. Line breaks and tabs stay; other control characters become visible.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_C}]/gu, (character) =>
    character === "\n" || character === "\t" ? character : visible(character),
  );
}

/** The same on one line: what others name can't look like a line of its own. */
export function printableLine(text: string): string {
  return printable(text).replace(/[\n\t]/g, visible);
}

function visible(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x20 ? String.fromCodePoint(0x2400 + code) : "\u{fffd}";
}
