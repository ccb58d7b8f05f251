import { isUtf8 } from "node:buffer";

/** Bytes of a stream in one frame at most: as base64 they make a line of 15,020 characters, and a pipe takes 16,384. */
export const maxChunkBytes = 11_264;
/** Characters of a line. Longer ones are noise. */
export const maxLineLength = 16_384;
/** Bytes of a text as JSON in a line. */
const maxTextBytes = 15_800;

/** Text if possible, since that adds no overhead; otherwise base64 with a marker. */
export type Payload = readonly [text: string] | readonly [base64: string, isBase64: 1];

/**
 * A payload's items as JSON, created once, since their length determines the form.
 * @param bytes at most `maxChunkBytes` of them.
 */
export function payloadJson(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isUtf8(buffer) && !buffer.includes(0)) {
    const json = JSON.stringify(buffer.toString("utf8"));
    if (Buffer.byteLength(json) <= maxTextBytes) return json;
  }
  return `"${buffer.toString("base64")}",1`;
}

export function decodePayload([content, isBase64]: Payload): Uint8Array {
  return Buffer.from(content, isBase64 === 1 ? "base64" : "utf8");
}

/** Where the next chunk ends: not within a character, so that text stays text. */
export function chunkEnd(bytes: Uint8Array, start: number, max: number): number {
  const end = start + max;
  if (end >= bytes.length) return bytes.length;
  for (let back = 0; back < 4 && end - back > start; back++) {
    // 10xxxxxx continues a character.
    if (((bytes[end - back] ?? 0) & 0xc0) !== 0x80) return end - back;
  }
  return end;
}
