const alphabet = Buffer.from(
  "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
);
const lineBytes = 52;

/** The lines of a binary patch: git's base 85, with the number of bytes of a line as a letter in front of it. */
export async function* base85Lines(
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const bytes of content) {
    const all = Buffer.concat([rest, bytes]);
    const whole = all.length - (all.length % lineBytes);
    if (whole > 0) yield linesOf(all.subarray(0, whole));
    rest = all.subarray(whole);
  }
  if (rest.length > 0) yield linesOf(rest);
}

function linesOf(bytes: Buffer): Buffer {
  const lines: number[] = [];
  for (let at = 0; at < bytes.length; at += lineBytes) {
    const line = bytes.subarray(at, at + lineBytes);
    lines.push(line.length <= 26 ? 64 + line.length : 96 + line.length - 26);
    for (let group = 0; group < line.length; group += 4) lines.push(...groupOf(line, group));
    lines.push(10);
  }
  return Buffer.from(lines);
}

/** Four bytes as five characters; zeros where there are fewer. */
function groupOf(line: Buffer, at: number): readonly number[] {
  let value = 0;
  for (let index = 0; index < 4; index += 1) value = value * 256 + (line[at + index] ?? 0);
  const group: number[] = [];
  for (let index = 0; index < 5; index += 1) {
    group.unshift(alphabet[value % 85] ?? 0);
    value = Math.floor(value / 85);
  }
  return group;
}
