import { ControlStringFilter, type TerminalSize } from "@ambit/client";
import emulators, { type IBufferCell, type Terminal } from "@xterm/headless";
import { colourOf, type TerminalSpan, type TerminalStyle } from "./terminal-text.js";
import { exactText } from "./words.js";

export type ScreenLine = readonly TerminalSpan[];

/** Lines that can be scrolled back to. */
const scrollback = 1_000;
/** Milliseconds between two pictures of the screen: what a program prints faster can't be read. */
const pictureMs = 30;

/**
 * An emulator without a page of its own: it says what its screen shows, in the page's few colours, and the page draws that. So
 * nothing that a sandbox prints becomes markup, a rule of style, a title, a link or a text of the clipboard.
 */
export class Emulator {
  readonly #terminal: Terminal;
  readonly #filter = new ControlStringFilter();
  readonly #decoder = new TextDecoder();
  readonly #listeners = new Set<() => void>();
  #history: readonly ScreenLine[] = [];
  #hasScrolled = true;
  #lines: readonly ScreenLine[] = [];
  #picture: ReturnType<typeof setTimeout> | undefined;

  /** @param onReply what a program asked the emulator for, such as where its cursor is */
  constructor({ columns, rows }: TerminalSize, onReply: (reply: string) => void) {
    this.#terminal = new emulators.Terminal({ cols: columns, rows, scrollback, allowProposedApi: true });
    this.#terminal.onData(onReply);
    this.#terminal.onScroll(() => {
      this.#hasScrolled = true;
    });
    this.#terminal.onWriteParsed(() => this.#draw());
  }

  /** Calls back when its lines have changed. @returns stops it */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** The lines from the oldest that can be scrolled back to, to the last of the screen. */
  readonly lines = (): readonly ScreenLine[] => this.#lines;

  get hasCursorKeys(): boolean {
    return this.#terminal.modes.applicationCursorKeysMode;
  }

  /** What is pasted, as a program has asked for it. What would end the paste early isn't in it. */
  pasted(text: string): string {
    const typed = text.replaceAll(/\r?\n/g, "\r").replaceAll("\u001b", "");
    return this.#terminal.modes.bracketedPasteMode ? `\u001b[200~${typed}\u001b[201~` : typed;
  }

  /** Resolves when it has taken the bytes, at its own pace. */
  write(bytes: Uint8Array): Promise<void> {
    const text = this.#filter.pass(this.#decoder.decode(bytes, { stream: true }));
    return new Promise((resolve) => this.#terminal.write(text, resolve));
  }

  resize({ columns, rows }: TerminalSize): void {
    this.#terminal.resize(columns, rows);
    this.#hasScrolled = true;
    this.#draw();
  }

  close(): void {
    clearTimeout(this.#picture);
    this.#terminal.dispose();
  }

  #draw(): void {
    this.#picture ??= setTimeout(() => {
      this.#picture = undefined;
      const { active } = this.#terminal.buffer;
      const { baseY, length, cursorX, cursorY } = active;
      const line = (y: number) => this.#line(y, y === baseY + cursorY ? cursorX : undefined);
      const range = (from: number, to: number) =>
        Array.from({ length: to - from }, (_, at) => line(from + at));
      if (this.#hasScrolled || this.#history.length !== baseY) this.#history = range(0, baseY);
      this.#hasScrolled = false;
      this.#lines = [...this.#history, ...range(baseY, length)];
      for (const listener of this.#listeners) listener();
    }, pictureMs);
  }

  /** @param cursor the column that it is in */
  #line(y: number, cursor: number | undefined): ScreenLine {
    const line = this.#terminal.buffer.active.getLine(y);
    const spans: { text: string; look: string; style: TerminalStyle }[] = [];
    const cell = this.#terminal.buffer.active.getNullCell();
    for (let x = 0; line !== undefined && x < line.length; x += 1) {
      line.getCell(x, cell);
      if (cell.getWidth() === 0) continue;
      const style = styleOf(cell, x === cursor);
      const look = JSON.stringify(style);
      const text = exactText(cell.getChars() || " ");
      const last = spans.at(-1);
      if (last?.look === look) last.text += text;
      else spans.push({ text, look, style });
    }
    const end = spans.at(-1);
    // Nothing is seen of what is empty to the line's end.
    if (end !== undefined && end.look === "{}") end.text = end.text.trimEnd();
    return spans.map(({ text, style }) => ({ text, style }));
  }
}

function styleOf(cell: IBufferCell, isCursor: boolean): TerminalStyle {
  const colour = colourOfCell(cell);
  return {
    ...(colour === undefined ? {} : { colour }),
    ...(cell.isBold() ? { isBold: true } : {}),
    ...(cell.isDim() ? { isDim: true } : {}),
    ...(cell.isItalic() ? { isItalic: true } : {}),
    ...(cell.isUnderline() ? { isUnderlined: true } : {}),
    ...(cell.isStrikethrough() ? { isStruck: true } : {}),
    ...(cell.isInverse() ? { isInverse: true } : {}),
    ...(isCursor ? { isCursor: true } : {}),
  };
}

function colourOfCell(cell: IBufferCell) {
  if (cell.isFgDefault()) return undefined;
  const colour = cell.getFgColor();
  if (cell.isFgPalette()) return colourOf([5, colour]);
  return colourOf([2, colour >> 16, (colour >> 8) & 255, colour & 255]);
}
