const escapeCharacter = "\u001b";
/** After an escape, what begins a string that a terminal obeys: titles, links, the clipboard, its palette, its own commands. */
const begins: ReadonlySet<string> = new Set("]PX^_");
/** Single characters that begin such a string. */
const begin = /[\u0090\u0098\u009d-\u009f]/;
/** BEL and ST end such a string, CAN and SUB cancel it; so does an escape, whatever follows. */
const ends: ReadonlySet<string> = new Set("\u0007\u009c\u0018\u001a");
const cancels: ReadonlySet<string> = new Set("\u0018\u001a");
/** What a terminal carries out in the middle of a sequence, which goes on after it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const carriedOut = /[\u0000-\u001f\u007f]/;

/**
 * Takes control strings (OSC, DCS, SOS, PM, APC) out of what a sandbox prints, piece by piece, for an emulator that shows it: the
 * emulator is its user's, whose clipboard and window title are none of the sandbox's. Colours and movements of the cursor stay.
 */
export class ControlStringFilter {
  #isInString = false;
  /** Whether an escape came last, which isn't passed on yet. */
  #hasEscape = false;

  /** What of a piece may be shown. */
  pass(piece: string): string {
    let shown = "";
    for (const character of piece) shown += this.#next(character);
    return shown;
  }

  #next(character: string): string {
    const hadEscape = this.#hasEscape;
    this.#hasEscape = character === escapeCharacter || (hadEscape && isCarriedOut(character));
    if (character === escapeCharacter) {
      // It ends a string, and of two escapes the second begins anew.
      this.#isInString = false;
      return "";
    }
    if (this.#isInString) {
      this.#isInString = !ends.has(character);
      return "";
    }
    this.#isInString = begin.test(character) || (hadEscape && begins.has(character));
    if (this.#isInString) return "";
    return hadEscape && !this.#hasEscape ? escapeCharacter + character : character;
  }
}

const isCarriedOut = (character: string) => carriedOut.test(character) && !cancels.has(character);
