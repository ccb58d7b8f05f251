/** Bytes to find, and their replacement of the same length, so that no framing changes. */
export interface Replacement {
  readonly find: Buffer;
  readonly put: Buffer;
}

/** Entries of the table of pairs. Small enough for the processor's L1 cache. */
const tableSize = 4_096;

/**
 * Finds several byte sequences in one pass, after Wu and Manber (1994): the pair of bytes at the end of a
 * window determines how far the window can move. Of text that has nothing in common with them, only few bytes are read.
 */
export class Replacements {
  /** The longest first, since a longer one may begin with a shorter one. */
  readonly #list: readonly Replacement[];
  readonly #minLength: number;
  readonly #maxLength: number;
  readonly #shifts = new Uint16Array(tableSize);
  readonly #isFirst = new Uint8Array(256);

  /** @throws RangeError for a replacement that changes a length, or looks for fewer than two bytes. */
  constructor(replacements: readonly Replacement[]) {
    const byText = new Map<string, Replacement>();
    for (const replacement of replacements) {
      const { find, put } = replacement;
      if (find.length < 2 || find.length !== put.length) {
        throw new RangeError("a replacement must be as long as what it replaces, and two bytes or more");
      }
      const text = find.toString("latin1");
      if (!byText.has(text)) byText.set(text, replacement);
    }
    this.#list = [...byText.values()].sort((one, other) => other.find.length - one.find.length);
    this.#maxLength = this.#list.at(0)?.find.length ?? 0;
    const minLength = this.#list.at(-1)?.find.length ?? Number.POSITIVE_INFINITY;
    this.#minLength = Math.min(minLength, 0xffff);
    this.#shifts.fill(this.#minLength - 1);
    for (const { find } of this.#list) {
      this.#isFirst[find[0] ?? 0] = 1;
      for (let end = 1; end < this.#minLength; end += 1) {
        const entry = entryOf(find[end - 1] ?? 0, find[end] ?? 0);
        this.#shifts[entry] = Math.min(this.#shifts[entry] ?? 0, this.#minLength - 1 - end);
      }
    }
  }

  get isEmpty(): boolean {
    return this.#list.length === 0;
  }

  /** The first match at or after `from`; of several at one position, the longest. */
  next(bytes: Buffer, from: number): { readonly at: number; readonly replacement: Replacement } | undefined {
    if (this.isEmpty) return undefined;
    const shifts = this.#shifts;
    const before = this.#minLength - 1;
    for (let end = from + before; end < bytes.length; ) {
      const shift = shifts[entryOf(bytes[end - 1] as number, bytes[end] as number)] as number;
      if (shift > 0) {
        end += shift;
        continue;
      }
      const at = end - before;
      const replacement = this.#list.find(({ find }) => isAt(bytes, at, find, find.length));
      if (replacement !== undefined) return { at, replacement };
      end += 1;
    }
    return undefined;
  }

  /**
   * The position, at or after `from`, of a suffix of `bytes` that is a prefix of one of them; else the length of
   * `bytes`.
   */
  startOfTail(bytes: Buffer, from: number): number {
    for (let at = Math.max(from, bytes.length - this.#maxLength + 1); at < bytes.length; at += 1) {
      if (this.#isFirst[bytes[at] ?? 0] === 0) continue;
      if (this.#list.some(({ find }) => isAt(bytes, at, find, bytes.length - at))) return at;
    }
    return bytes.length;
  }
}

function entryOf(first: number, second: number): number {
  return ((first << 5) ^ second) & (tableSize - 1);
}

/** Whether the first `length` bytes of `find` are at `at`. */
function isAt(bytes: Buffer, at: number, find: Buffer, length: number): boolean {
  if (at + length > bytes.length || length > find.length) return false;
  // A call of the native comparison costs more than a few steps here, but almost nothing per byte, so that a text of
  // many prefixes of a long sequence doesn't delay other sessions.
  const steps = Math.min(length, stepwiseBytes);
  for (let step = 0; step < steps; step += 1) if (bytes[at + step] !== find[step]) return false;
  return length === steps || bytes.compare(find, steps, length, at + steps, at + length) === 0;
}

const stepwiseBytes = 32;

/** Replacements for a value in every form in which servers repeat it, each by a stand-in of the same form and length. */
export function replacementsFor(value: string, standIn: string): readonly Replacement[] {
  const fitted = Buffer.alloc(Buffer.byteLength(value), standIn).toString();
  const forms = formsOf(fitted);
  return formsOf(value).map((text, index) => {
    const find = Buffer.from(text);
    return { find, put: Buffer.alloc(find.length, forms[index] ?? standIn) };
  });
}

/** Plain, percent-encoded, escaped in JSON, and in base64 at each of its three offsets, in both alphabets. */
function formsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value);
  const encoded = [0, 1, 2].flatMap((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    // The first and last characters also contain bits of the surrounding text.
    const whole = text.slice(Math.ceil((offset * 4) / 3), Math.floor(((offset + bytes.length) * 4) / 3));
    return [whole, whole.replaceAll("+", "-").replaceAll("/", "_")];
  });
  return [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1), ...encoded];
}
