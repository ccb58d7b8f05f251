/** Bytes of one result that the model gets at most. */
export const maxOutputBytes = 100_000;

const steering =
  "This result was too large to return in full. Narrow your query (add filters, a smaller date range, or specific fields), request a summary, or paginate and fetch fewer items per call, then try again.";

/**
 * `text` unchanged, or truncated at a character with a notice of how much was omitted; never longer than `limit` bytes.
 */
export function shortened(text: string, limit: number = maxOutputBytes): string {
  // A UTF-16 code unit takes three bytes at most, so most results need no counting.
  if (text.length * 3 <= limit) return text;
  const length = Buffer.byteLength(text);
  if (length <= limit) return text;
  // Only the part that may be kept is copied: a result may have megabytes.
  const bytes = Buffer.from(text.slice(0, limit), "utf8");
  const notice = (omitted: number) => `\n\n[… ${omitted} bytes omitted]\n${steering}`;
  let end = Math.max(0, limit - Buffer.byteLength(notice(length)));
  // 10xxxxxx is a continuation byte: cut before the character's first byte.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end) + notice(length - end);
}
