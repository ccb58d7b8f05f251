/**
 * Where a piece of the text may end: at `end`, or before it where that is between the halves of a surrogate pair, which
 * would each be encoded as a replacement character. Pure.
 */
export function pieceEnd(text: string, end: number): number {
  const unit = text.charCodeAt(end - 1);
  return end < text.length && unit >= 0xd800 && unit <= 0xdbff ? end - 1 : end;
}
