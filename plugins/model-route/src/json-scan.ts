/** A key below a path. */
export function joined(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

/** The objects and arrays that enclose a value. For `tools[].type`: the document, `tools` and `tools[]`. */
export function ancestorsOf(path: string): readonly string[] {
  return [
    "",
    ...[...path.matchAll(/\[\]|\./g)].flatMap(({ index }, at, all) => {
      const before = path.slice(0, index);
      // An array's elements enclose it too.
      return all[at]?.[0] === "[]" ? [before, `${before}[]`] : [before];
    }),
  ];
}

const quote = 0x22;
const backslash = 0x5c;

/** Longest key in a path, in characters; a longer one matches no path. */
const maxKeyLength = 128;
/** Bytes of one captured value. */
const maxCaptureBytes = 16_384;
/** Characters of a value's beginning that are reported whatever its length. */
const maxHeadLength = 64;

export interface Captured {
  /** The path as requested. */
  readonly path: string;
  /** The last key, in lower case. */
  readonly key: string;
  /** Undefined if it isn't JSON, or too long to keep. */
  readonly value: unknown;
  /** The value's first characters, unparsed. */
  readonly head: string;
  /** Offsets of the value's bytes in the document. `end` is exclusive. */
  readonly start: number;
  readonly end: number;
}

export interface ScanOptions {
  /**
   * Paths to capture: `model`, `message.usage`, `tools[].type`, `tools[].*` for any key. Compared case-insensitively,
   * since some servers read keys that way.
   */
  readonly paths: readonly string[];
  onCaptured(captured: Captured): void;
}

type Level =
  | { readonly kind: "array"; readonly path: string }
  | {
      readonly kind: "object";
      readonly path: string;
      expects: "key" | "colon" | "value" | "comma";
    };

/**
 * Finds a few members near the top of a JSON document that arrives in pieces, without keeping the document. It
 * validates only what it needs to track its position: what isn't JSON yields nothing, or the recipient rejects it.
 */
export class JsonScan {
  readonly #wanted: ReadonlySet<string>;
  /** Of objects and arrays that enclose a wanted value. All others are skipped. */
  readonly #ancestors: ReadonlySet<string>;
  readonly #onCaptured: ScanOptions["onCaptured"];
  readonly #levels: Level[] = [];
  /** Levels that can't hold a wanted path. */
  #below = 0;
  #offset = 0;
  #string: { escaped: boolean; bytes: number[] | undefined } | undefined;
  #key: string | undefined;
  #capture:
    | {
        readonly path: string;
        readonly key: string;
        readonly start: number;
        readonly depth: number;
        parts: Buffer[];
        size: number;
      }
    | undefined;

  constructor({ paths, onCaptured }: ScanOptions) {
    this.#wanted = new Set(paths.map((path) => path.toLowerCase()));
    this.#ancestors = new Set([...this.#wanted].flatMap(ancestorsOf));
    this.#onCaptured = onCaptured;
  }

  /** Bytes that were scanned. */
  get offset(): number {
    return this.#offset;
  }

  feed(bytes: Buffer): void {
    let captureFrom = this.#capture === undefined ? undefined : 0;
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.#string !== undefined) {
        at = this.#inString(bytes, at);
        continue;
      }
      const byte = bytes[at] ?? 0;
      if (byte <= 0x20) continue;
      // A scalar at a wanted path ends where its container continues.
      if (this.#capture !== undefined && (byte === 0x2c || byte === 0x7d || byte === 0x5d)) {
        if (this.#depthNow() === this.#capture.depth) {
          this.#endCapture(bytes, captureFrom ?? 0, at);
          captureFrom = undefined;
        }
      }
      const began = this.#structural(byte, at);
      if (began) captureFrom = at;
    }
    if (this.#capture !== undefined) this.#keep(bytes.subarray(captureFrom ?? 0));
    this.#offset += bytes.length;
  }

  /** @returns whether a wanted value begins here. */
  #structural(byte: number, at: number): boolean {
    const level = this.#below > 0 ? undefined : this.#levels.at(-1);
    const isValue = level?.kind === "object" && level.expects === "value" && byte !== 0x2c && byte !== 0x7d;
    const began = isValue && this.#beginValue(level, at);
    switch (byte) {
      case quote: {
        const isKey = level?.kind === "object" && level.expects === "key";
        this.#string = { escaped: false, bytes: isKey ? [] : undefined };
        break;
      }
      case 0x3a:
        if (level?.kind === "object" && level.expects === "colon") level.expects = "value";
        break;
      case 0x2c:
        if (level?.kind === "object") level.expects = "key";
        break;
      case 0x7b:
      case 0x5b:
        this.#open(byte === 0x7b, level);
        break;
      case 0x7d:
      case 0x5d:
        this.#close();
        break;
    }
    return began;
  }

  #beginValue(level: Level & { kind: "object" }, at: number): boolean {
    level.expects = "comma";
    const key = this.#key;
    if (this.#capture !== undefined || key === undefined) return false;
    const path = [joined(level.path, key), joined(level.path, "*")].find((one) => this.#wanted.has(one));
    if (path === undefined) return false;
    this.#capture = { path, key, start: this.#offset + at, depth: this.#depthNow(), parts: [], size: 0 };
    return true;
  }

  /** The path of a value that begins now; undefined for a key that matches none. */
  #pathHere(parent: Level | undefined): string | undefined {
    if (parent === undefined) return this.#levels.length === 0 ? "" : undefined;
    if (parent.kind === "array") return `${parent.path}[]`;
    return this.#key === undefined ? undefined : joined(parent.path, this.#key);
  }

  #open(isObject: boolean, parent: Level | undefined): void {
    const path = this.#below > 0 ? undefined : this.#pathHere(parent);
    if (path === undefined || !this.#ancestors.has(path)) this.#below += 1;
    else this.#levels.push(isObject ? { kind: "object", path, expects: "key" } : { kind: "array", path });
  }

  #close(): void {
    if (this.#below > 0) this.#below -= 1;
    else this.#levels.pop();
  }

  #depthNow(): number {
    return this.#levels.length + this.#below;
  }

  /** @returns the position of the last byte that belongs to the string. */
  #inString(bytes: Buffer, from: number): number {
    const string = this.#string;
    if (string === undefined) return from;
    let at = from;
    if (string.escaped) {
      string.bytes?.push(bytes[at] ?? 0);
      string.escaped = false;
      at += 1;
    }
    // Searched again only after an escape: otherwise a text of escapes would be scanned once for each of them.
    let end = -2;
    for (;;) {
      if (end !== -1 && end < at) end = bytes.indexOf(quote, at);
      const stop = end === -1 ? bytes.length : end;
      const escapeAt = bytes.subarray(at, stop).indexOf(backslash);
      if (escapeAt !== -1) {
        const next = at + escapeAt + 1;
        this.#collect(string.bytes, bytes.subarray(at, Math.min(next + 1, bytes.length)));
        if (next >= bytes.length) {
          string.escaped = true;
          return bytes.length;
        }
        at = next + 1;
        continue;
      }
      this.#collect(string.bytes, bytes.subarray(at, stop));
      if (end === -1) return bytes.length;
      this.#endString(string.bytes);
      return end;
    }
  }

  #collect(into: number[] | undefined, bytes: Buffer): void {
    if (into === undefined || into.length > maxKeyLength) return;
    for (const byte of bytes.subarray(0, maxKeyLength + 1)) into.push(byte);
  }

  #endString(bytes: number[] | undefined): void {
    this.#string = undefined;
    if (bytes === undefined) return;
    const level = this.#levels.at(-1);
    if (level?.kind === "object") level.expects = "colon";
    this.#key = bytes.length > maxKeyLength ? undefined : keyIn(Buffer.from(bytes));
  }

  #keep(bytes: Buffer): void {
    const capture = this.#capture;
    if (capture === undefined) return;
    capture.size += bytes.length;
    if (capture.size <= maxCaptureBytes) capture.parts.push(Buffer.from(bytes));
    else if (capture.parts.length === 0) capture.parts.push(Buffer.from(bytes.subarray(0, maxHeadLength)));
  }

  #endCapture(bytes: Buffer, from: number, at: number): void {
    const capture = this.#capture;
    if (capture === undefined) return;
    this.#keep(bytes.subarray(from, at));
    this.#capture = undefined;
    const { path, key, start, parts, size } = capture;
    const captured = Buffer.concat(parts);
    const text = size > maxCaptureBytes ? "" : captured.toString("utf8");
    const end = start + Buffer.byteLength(text.trimEnd());
    const head = captured.toString("latin1", 0, maxHeadLength).trimEnd();
    this.#onCaptured({ path, key, value: valueIn(text), head, start, end });
  }
}

/** A key may be written with escapes: `mod\u0065l` is `model`. */
function keyIn(bytes: Buffer): string | undefined {
  const key = valueIn(`"${bytes.toString("utf8")}"`);
  return typeof key === "string" ? key.toLowerCase() : undefined;
}

/** Undefined if it isn't JSON, or was too long to keep. */
function valueIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The provider rejects the document; nothing is concluded from it here.
    return undefined;
  }
}
