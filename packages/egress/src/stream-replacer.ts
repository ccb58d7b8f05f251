import { Transform } from "node:stream";

/** Bytes to look for, and what is put over them: of the same length, so that no framing changes. */
export interface Replacement {
  readonly find: Buffer;
  readonly put: Buffer;
}

/**
 * Replaces byte sequences in a stream, also across chunks. Holds back no more than the end of a chunk that may be the
 * beginning of a sequence, so a stream of events isn't delayed.
 */
export class StreamReplacer {
  readonly #replacements: readonly Replacement[];
  #held: Buffer = Buffer.alloc(0);

  /** @throws RangeError for a replacement that changes a length, or looks for nothing. */
  constructor(replacements: readonly Replacement[]) {
    for (const { find, put } of replacements) {
      if (find.length === 0 || find.length !== put.length) {
        throw new RangeError("a replacement must be as long as what it replaces, and not empty");
      }
    }
    const known = new Set<string>();
    this.#replacements = replacements.filter(({ find }) => {
      const key = find.toString("latin1");
      return !known.has(key) && known.add(key);
    });
  }

  /** @returns what can be passed on; may be empty. Never changes `chunk`. */
  push(chunk: Buffer): Buffer {
    let bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    let copied = bytes !== chunk;
    for (const { find, put } of this.#replacements) {
      for (let at = bytes.indexOf(find); at !== -1; at = bytes.indexOf(find, at + find.length)) {
        if (!copied) bytes = Buffer.from(bytes);
        copied = true;
        put.copy(bytes, at);
      }
    }
    const end = this.#replacements.reduce(
      (least, { find }) => Math.min(least, startOfTail(bytes, find)),
      bytes.length,
    );
    this.#held = bytes.subarray(end);
    return bytes.subarray(0, end);
  }

  /** What was held back: the stream has ended, so it is the beginning of nothing. */
  end(): Buffer {
    const rest = this.#held;
    this.#held = Buffer.alloc(0);
    return rest;
  }

  /** The same as a stream with back-pressure. */
  asTransform(): Transform {
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        const passed = this.push(chunk);
        done(null, passed.length === 0 ? undefined : passed);
      },
      flush: (done) => {
        const rest = this.end();
        done(null, rest.length === 0 ? undefined : rest);
      },
    });
  }
}

/** Where the longest end of `bytes` begins that `find` begins with; its length when there is none. */
function startOfTail(bytes: Buffer, find: Buffer): number {
  const first = find[0] ?? 0;
  const from = Math.max(0, bytes.length - find.length + 1);
  for (let at = bytes.indexOf(first, from); at !== -1; at = bytes.indexOf(first, at + 1)) {
    if (bytes.compare(find, 0, bytes.length - at, at) === 0) return at;
  }
  return bytes.length;
}

/** The value in a text, in the forms that servers repeat it in, each with as much of a stand-in in the same form. */
export function replacementsFor(value: string, standIn: string): readonly Replacement[] {
  const fitted = Buffer.alloc(Buffer.byteLength(value), standIn).toString();
  const forms = formsOf(fitted);
  const replacements = formsOf(value).map((text, index) => {
    const find = Buffer.from(text);
    return { find, put: Buffer.alloc(find.length, forms[index] ?? standIn) };
  });
  // A longer form may hold a shorter one.
  return replacements.sort((one, other) => other.find.length - one.find.length);
}

/** Plain, percent-encoded, escaped in JSON, and in base64 at each of its three offsets, in both alphabets. */
function formsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value);
  const encoded = [0, 1, 2].flatMap((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    // The first and last characters also hold bits of what is around the value.
    const whole = text.slice(Math.ceil((offset * 4) / 3), Math.floor(((offset + bytes.length) * 4) / 3));
    return [whole, whole.replaceAll("+", "-").replaceAll("/", "_")];
  });
  return [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1), ...encoded];
}
