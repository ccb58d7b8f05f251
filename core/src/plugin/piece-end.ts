/**
 * Where a piece of the text may end: at `end`, or before it where that is between the halves of a surrogate pair, which
 * would each be encoded as a replacement character. Pure.
 */
export function pieceEnd(text: string, end: number): number {
  const unit = text.charCodeAt(end - 1);
  return end < text.length && unit >= 0xd800 && unit <= 0xdbff ? end - 1 : end;
}

/**
 * The beginning of a text, without the word that the limit would cut: half of a credential wouldn't be recognised in it.
 * Words end at white space and quotes. Pure.
 */
export function wholeWords(text: string, max: number): string {
  if (text.length <= max) return text;
  let end = max;
  while (end > 0 && !/[\s"']/.test(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
