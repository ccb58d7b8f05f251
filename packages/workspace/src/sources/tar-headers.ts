import { Transform } from "node:stream";

/** A block of an archive: headers begin at its multiples. */
const block = 512;
const kilobyte = 1_024;

/**
 * Bytes of what an archive says of a file beside its header, by its type: names (`L`, `K`) and attributes (`x`) of the next
 * file, and attributes of all that follow (`g`), which are copied for each of them.
 */
const maxBytes: ReadonlyMap<string, number> = new Map([
  ["L", 256 * kilobyte],
  ["K", 256 * kilobyte],
  ["x", 256 * kilobyte],
  ["g", 4 * kilobyte],
]);

/** An archive says too much of a file beside its content. */
export class TarHeaderTooLong extends Error {}

/**
 * Passes a tar archive on, and fails before a header that is too long. It looks at every block, not
 * only where this header or that says the next one begins: the reader of the archive may read their sizes differently.
 */
export function boundedHeaders(): Transform {
  let rest: Buffer = Buffer.alloc(0);
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const whole = bytes.length - (bytes.length % block);
      rest = bytes.subarray(whole);
      const blocks = bytes.subarray(0, whole);
      if (hasTooLong(blocks)) return done(new TarHeaderTooLong());
      if (whole > 0) this.push(blocks);
      done();
    },
    flush(done) {
      done(null, rest);
    },
  });
}

function hasTooLong(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += block) if (isTooLong(bytes.subarray(at, at + block))) return true;
  return false;
}

function isTooLong(bytes: Buffer): boolean {
  const max = maxBytes.get(String.fromCharCode(bytes[156] ?? 0));
  return max !== undefined && bytes.toString("latin1", 257, 262) === "ustar" && sizeIn(bytes) > max;
}

/** Infinite where it isn't written in octal digits, as any size of such a header can be. */
function sizeIn(bytes: Buffer): number {
  const [, digits] = /^[\0 ]*([0-7]+)[\0 ]*$/.exec(bytes.toString("latin1", 124, 136)) ?? [];
  return digits === undefined ? Number.POSITIVE_INFINITY : Number.parseInt(digits, 8);
}
