/**
 * Redacts a text that comes in pieces. What is given out, joined, is what redacting the whole text at once would give:
 * the end of what came is held back for as long as it could still become a secret, or a longer one.
 */
export class StreamRedactor {
  readonly #longest: number;
  readonly #pattern: RegExp;
  readonly #byFirst = new Map<string, string[]>();
  #held = "";

  /** @param secrets the longest first. */
  constructor(
    secrets: readonly string[],
    readonly mark: string,
  ) {
    this.#longest = secrets[0]?.length ?? 0;
    this.#pattern = new RegExp(
      secrets.map((secret) => secret.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|"),
      "g",
    );
    for (const secret of secrets) {
      const first = secret.charAt(0);
      const same = this.#byFirst.get(first);
      if (same === undefined) this.#byFirst.set(first, [secret]);
      else same.push(secret);
    }
  }

  push(piece: string): string {
    const text = this.#held + piece;
    const safe: string[] = [];
    let from = 0;
    for (;;) {
      this.#pattern.lastIndex = from;
      const match = this.#pattern.exec(text);
      const until = match?.index ?? text.length;
      const doubt = this.#doubtBetween(text, from, match === null ? until : until + 1);
      if (doubt !== undefined) {
        this.#held = text.slice(doubt);
        return safe.join("") + text.slice(from, doubt);
      }
      safe.push(text.slice(from, until));
      if (match === null) break;
      safe.push(this.mark);
      from = until + match[0].length;
    }
    this.#held = "";
    return safe.join("");
  }

  /** What was held back, when nothing more comes. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest.replace(this.#pattern, this.mark);
  }

  /** The first place from which the rest of the text is the beginning of a secret, and not yet all of it. */
  #doubtBetween(text: string, from: number, until: number): number | undefined {
    for (let start = Math.max(from, text.length - this.#longest + 1); start < until; start += 1) {
      const candidates = this.#byFirst.get(text.charAt(start));
      const length = text.length - start;
      if (candidates?.some((secret) => secret.length > length && secret.startsWith(text.slice(start))))
        return start;
    }
    return undefined;
  }
}
