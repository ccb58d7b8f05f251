import { setTimeout as delay } from "node:timers/promises";
import { Replacements, replaceIn, replacementsFor } from "@ambit/egress";

/** Characters, in whole lines, of a server's output that an error quotes: they often give the reason. */
const maxOutputLength = 1_000;
/** Milliseconds until an ended server's output has arrived. */
const maxWaitMs = 1_000;

/** Reads a server's stderr, which would block it when unread, and keeps its end. */
export class LastWords {
  readonly #read: Promise<void>;
  readonly #lines: WholeLines;
  #end = "";

  constructor(stream: ReadableStream<Uint8Array>, said: (text: string) => void) {
    const decoder = new TextDecoder();
    this.#lines = new WholeLines(said);
    const reading = stream.pipeTo(
      new WritableStream({
        write: (chunk) => {
          const text = decoder.decode(chunk, { stream: true });
          this.#end = (this.#end + text).slice(-maxOutputLength);
          this.#lines.push(text);
        },
      }),
    );
    // The server was killed: no more output follows.
    this.#read = reading.catch(() => {}).finally(() => this.#lines.end());
  }

  /** After the server has ended. A process that it left behind may hold its output open: that isn't waited for. */
  async all(): Promise<string> {
    await Promise.race([this.#read, delay(maxWaitMs, undefined, { ref: false })]);
    // The rest of a truncated line might be part of a secret, which redaction wouldn't recognise.
    const whole = this.#end.length < maxOutputLength ? 0 : this.#end.indexOf("\n") + 1 || maxOutputLength;
    return this.#end.slice(whole).trim();
  }
}

/** Shorter values occur in any text. */
const minHiddenLength = 8;

/**
 * A short text without the values of an environment, nor lines of them, in any form: the agent may not see those of a
 * server. Pure.
 */
export function withoutValues(text: string, environment: Readonly<Record<string, string>>): string {
  const values = Object.values(environment).flatMap((value) => [value, ...value.split(/\r?\n/)]);
  const hidden = values.filter(({ length }) => length >= minHiddenLength && length <= text.length);
  const replacements = new Replacements(hidden.flatMap((value) => replacementsFor(value, "*")));
  return replaceIn(text, replacements, "utf8");
}

/** Characters of a line that is logged. */
const maxLineLength = 2_000;

/**
 * Logs a text line by line as it arrives in pieces: a secret that is split between two writes is complete in its line,
 * where the log recognises it. Of a line that is too long only its length is logged, since truncating might leave half
 * a secret.
 */
export class WholeLines {
  #waiting = "";
  #omittedLength = 0;

  constructor(readonly said: (line: string) => void) {}

  push(text: string): void {
    const lines = text.split("\n");
    const rest = lines.pop() ?? "";
    for (const line of lines) {
      this.#add(line);
      this.end();
    }
    this.#add(rest);
  }

  /** The last line, without a line break. */
  end(): void {
    if (this.#omittedLength > 0) this.said(`[a line of ${this.#omittedLength} characters]`);
    else if (this.#waiting.trim() !== "") this.said(this.#waiting);
    this.#waiting = "";
    this.#omittedLength = 0;
  }

  #add(text: string): void {
    const length = Math.max(this.#omittedLength, this.#waiting.length) + text.length;
    if (length > maxLineLength) {
      this.#omittedLength = length;
      this.#waiting = "";
    } else this.#waiting += text;
  }
}
