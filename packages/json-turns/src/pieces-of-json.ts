/** Characters that are parsed in one step: 1 to 3 ms for the most expensive JSON. */
export const pieceLength = 32_768;

/**
 * `JSON.parse` of a long text in steps: what it yields in between is of no meaning, and it returns the value. Lists and
 * objects that are longer than a step are put together from what `JSON.parse` makes of their items; so are texts.
 *
 * @param maxLength characters of one step
 * @throws SyntaxError for every text for which `JSON.parse` does
 */
export function piecesOfJson(text: string, maxLength = pieceLength): Generator<undefined, unknown> {
  return new DividedText(text, maxLength).parse();
}

const code = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  openList: 0x5b,
  backslash: 0x5c,
  closeList: 0x5d,
  unicodeEscape: 0x75,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const;

const notSpace = /[^ \t\n\r]/g;
const scalar = /[^\s,:"[\]{}]+/y;

type JsonObject = Record<string, unknown>;

/** A list or object whose end wasn't reached yet. */
type Container = { isEmpty: boolean; isAfterComma: boolean; key: string } & (
  | { readonly kind: "list"; readonly value: unknown[] }
  | { readonly kind: "object"; readonly value: JsonObject }
);

/** One level of what is open at the end of a step. */
interface Level {
  /** Behind its bracket. */
  readonly from: number;
  /** Its last comma within the step; -1 without one. */
  comma: number;
}

class DividedText {
  readonly #open: Container[] = [];
  /** The next character. */
  #at = 0;
  #root: unknown;

  constructor(
    readonly text: string,
    readonly maxLength: number,
  ) {}

  *parse(): Generator<undefined, unknown> {
    this.#skipSpace();
    yield* this.#item();
    for (let container = this.#open.at(-1); container !== undefined; container = this.#open.at(-1)) {
      this.#skipSpace();
      if (!this.#items(container)) yield* this.#item(container);
      yield;
    }
    if (this.#at < this.text.length) throw this.#broken();
    return this.#root;
  }

  /** Parses the whole items that a step reaches. @returns false if there is none, since the next one is too long. */
  #items(container: Container): boolean {
    const { text } = this;
    const { levels, closedAt } = this.#scan();
    if (closedAt !== undefined) {
      this.#addAll(container, text.slice(this.#at, closedAt), true);
      this.#at = closedAt;
      this.#afterItem();
      return true;
    }
    let hasMoved = false;
    let current = container;
    for (const [index, { comma }] of levels.entries()) {
      if (comma >= 0) {
        this.#addAll(current, text.slice(this.#at, comma), false);
        this.#at = comma + 1;
        hasMoved = true;
      }
      const inner = levels[index + 1];
      if (inner === undefined) break;
      this.#readKey(current, text.slice(this.#at, inner.from - 1));
      this.#at = inner.from - 1;
      current = this.#begin(current);
      hasMoved = true;
    }
    return hasMoved;
  }

  /** What of the open container's items ends within a step. */
  #scan(): { readonly levels: readonly Level[]; readonly closedAt?: number } {
    const { text } = this;
    const begin = this.#at;
    const end = Math.min(begin + this.maxLength, text.length);
    const step = text.slice(begin, end);
    let backslash = step.indexOf("\\");
    const levels: Level[] = [];
    let level: Level = { from: begin, comma: -1 };
    levels.push(level);
    for (let at = begin; at < end; at += 1) {
      switch (text.charCodeAt(at)) {
        case code.quote: {
          // Most texts have no backslash, and are skipped as fast as one character.
          const quote = step.indexOf('"', at - begin + 1);
          if (quote === -1) return { levels };
          if (backslash !== -1 && backslash < at - begin) backslash = step.indexOf("\\", at - begin);
          const isPlain = backslash === -1 || quote < backslash;
          at = isPlain ? begin + quote : this.#endOfText(at + 1, end).at;
          break;
        }
        case code.openList:
        case code.openObject:
          level = { from: at + 1, comma: -1 };
          levels.push(level);
          break;
        case code.closeList:
        case code.closeObject: {
          levels.pop();
          const outer = levels.at(-1);
          if (outer === undefined) return { levels, closedAt: at };
          level = outer;
          break;
        }
        case code.comma:
          level.comma = at;
          break;
      }
    }
    return { levels };
  }

  /** One item, however long: a text in steps, a list or object by beginning it. */
  *#item(container?: Container): Generator<undefined, void> {
    this.#skipSpace();
    if (container?.kind === "object") {
      if (this.text.charCodeAt(this.#at) !== code.quote) throw this.#broken();
      container.key = yield* this.#string();
      this.#skipSpace();
      if (this.text.charCodeAt(this.#at) !== code.colon) throw this.#broken();
      this.#at += 1;
      this.#skipSpace();
    }
    switch (this.text.charCodeAt(this.#at)) {
      case code.openList:
      case code.openObject:
        this.#begin(container);
        return;
      case code.quote:
        this.#add(container, yield* this.#string());
        break;
      default:
        scalar.lastIndex = this.#at;
        if (!scalar.test(this.text)) throw this.#broken();
        this.#add(container, this.#parsed(this.text.slice(this.#at, scalar.lastIndex)));
        this.#at = scalar.lastIndex;
    }
    this.#afterItem();
  }

  /** @returns the new list or object, which is an item of the given one */
  #begin(outer: Container | undefined): Container {
    const state = { isEmpty: true, isAfterComma: false, key: "" };
    const isList = this.text.charCodeAt(this.#at) === code.openList;
    const inner: Container = isList
      ? { kind: "list", value: [], ...state }
      : { kind: "object", value: {}, ...state };
    this.#add(outer, inner.value);
    this.#open.push(inner);
    this.#at += 1;
    return inner;
  }

  /** Behind an item: a comma, or the ends of what is open. */
  #afterItem(): void {
    for (let container = this.#open.at(-1); ; container = this.#open.at(-1)) {
      this.#skipSpace();
      if (container === undefined) return;
      const next = this.text.charCodeAt(this.#at);
      const close = container.kind === "list" ? code.closeList : code.closeObject;
      if (next !== close && next !== code.comma) throw this.#broken();
      this.#at += 1;
      if (next === code.comma) {
        container.isAfterComma = true;
        return;
      }
      this.#open.pop();
    }
  }

  /** @param items separated by commas. @param isEnd whether the container ends behind them */
  #addAll(container: Container, items: string, isEnd: boolean): void {
    if (container.kind === "list") {
      const parsed = this.#parsed(`[${items}]`);
      if (!Array.isArray(parsed)) throw this.#broken();
      for (const item of parsed) container.value.push(item);
      this.#added(container, parsed.length, isEnd);
    } else {
      const parsed = this.#parsed(`{${items}}`);
      if (typeof parsed !== "object" || parsed === null) throw this.#broken();
      const members = Object.entries(parsed);
      for (const [key, value] of members) put(container.value, key, value);
      this.#added(container, members.length, isEnd);
    }
  }

  #added(container: Container, count: number, isEnd: boolean): void {
    const mayBeEmpty = isEnd && !container.isAfterComma && container.isEmpty;
    if (count === 0 && !mayBeEmpty) throw this.#broken();
    container.isEmpty &&= count === 0;
    container.isAfterComma = !isEnd;
  }

  #add(container: Container | undefined, value: unknown): void {
    if (container === undefined) this.#root = value;
    else {
      if (container.kind === "list") container.value.push(value);
      else put(container.value, container.key, value);
      container.isEmpty = false;
      container.isAfterComma = false;
    }
  }

  /** The text that begins here, in steps. */
  *#string(): Generator<undefined, string> {
    let value = "";
    this.#at += 1;
    for (;;) {
      const { at, isClosed } = this.#endOfText(this.#at, this.#at + this.maxLength);
      const piece = this.#parsed(`"${this.text.slice(this.#at, at)}"`);
      if (typeof piece !== "string") throw this.#broken();
      value += piece;
      this.#at = isClosed ? at + 1 : at;
      if (isClosed) return value;
      if (at >= this.text.length) throw this.#broken();
      yield;
    }
  }

  /** The closing quote of the text whose content goes on here, or a place at which it can be divided. */
  #endOfText(from: number, end: number): { readonly at: number; readonly isClosed: boolean } {
    const { text } = this;
    const last = Math.min(end, text.length);
    let at = from;
    while (at < last) {
      const next = text.charCodeAt(at);
      if (next === code.quote) return { at, isClosed: true };
      const isEscape = next === code.backslash;
      at += isEscape ? (text.charCodeAt(at + 1) === code.unicodeEscape ? 6 : 2) : 1;
    }
    return { at: Math.min(at, text.length), isClosed: false };
  }

  /** @param before what stands before a value: a key with its colon in an object, nothing in a list; and space */
  #readKey(container: Container, before: string): void {
    if (container.kind === "list") this.#parsed(`[${before} 0]`);
    else [container.key = ""] = Object.keys(this.#parsed(`{${before} 0}`) ?? {});
  }

  #parsed(piece: string): unknown {
    try {
      return JSON.parse(piece);
    } catch (cause) {
      throw this.#broken(cause);
    }
  }

  #skipSpace(): void {
    notSpace.lastIndex = this.#at;
    const found = notSpace.test(this.text);
    this.#at = found ? notSpace.lastIndex - 1 : this.text.length;
  }

  #broken(cause?: unknown): SyntaxError {
    return new SyntaxError(`unexpected text after character ${this.#at.toLocaleString("en")}`, { cause });
  }
}

/** As `JSON.parse` does, which makes even `__proto__` a member. */
function put(object: JsonObject, key: string, value: unknown): void {
  if (key === "__proto__")
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  else object[key] = value;
}
