/**
 * A text that is safe to write to a terminal: an agent's output must not move the cursor, retitle the window or
 * respond as if it were the user. Line breaks and tabs stay; other control characters become visible.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_C}]/gu, (character) => {
    if (character === "\n" || character === "\t") return character;
    const code = character.codePointAt(0) ?? 0;
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : "\u{fffd}";
  });
}
