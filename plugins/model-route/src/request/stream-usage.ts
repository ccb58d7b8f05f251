import type { ReadBody } from "./read-body.js";

const asked = Buffer.from('{"include_usage":true}');
const inserted = Buffer.from('"stream_options":{"include_usage":true},');

/**
 * The body of a streamed Chat Completions request with the stream's usage enabled: otherwise the provider sends none.
 * Other members of `stream_options` are removed. Pure.
 */
export function askingForUsage(body: ReadBody): readonly Buffer[] {
  if (!body.streamed) return body.parts;
  const options = body.streamOptions;
  if (options === undefined) {
    const brace = positionOfBrace(body.parts);
    return brace === undefined ? body.parts : spliced(body.parts, brace + 1, brace + 1, inserted);
  }
  const { value, start, end } = options;
  const asks = typeof value === "object" && value !== null && "include_usage" in value;
  if (asks && value.include_usage === true) return body.parts;
  return spliced(body.parts, start, end, asked);
}

function positionOfBrace(parts: readonly Buffer[]): number | undefined {
  let offset = 0;
  for (const part of parts) {
    const at = part.indexOf(0x7b);
    if (at !== -1) return offset + at;
    offset += part.length;
  }
  return undefined;
}

function spliced(parts: readonly Buffer[], start: number, end: number, put: Buffer): readonly Buffer[] {
  const result: Buffer[] = [];
  let offset = 0;
  let isPut = false;
  for (const part of parts) {
    const before = part.subarray(0, Math.max(0, start - offset));
    const after = part.subarray(Math.min(part.length, Math.max(0, end - offset)));
    if (before.length > 0) result.push(before);
    if (!isPut && offset + part.length >= start) {
      result.push(put);
      isPut = true;
    }
    if (offset + part.length > end) result.push(after);
    offset += part.length;
  }
  return result;
}
