import type { CallSubject } from "../values/call.js";
import { type ArgumentTexts, head, textsIn } from "./argument-texts.js";
import { commandsIn } from "./commands.js";

/** A text that determines what a call does, as a rule that allows it compares it. */
export interface ComparedCommand {
  readonly begins: string;
  /** Whether it may do something else as well. */
  readonly doesMore: boolean;
}

/** What rules compare of one call's arguments. Each is read once. */
export class CallTexts {
  /** In ascending order. */
  #all: ArgumentTexts | undefined;
  #commands: readonly ComparedCommand[] | undefined;

  constructor(
    readonly input: unknown,
    readonly tool: CallSubject["tool"],
  ) {}

  /** Whether any text begins with the prefix, or not all of them can be read. */
  mayBeginWith(prefix: string): boolean {
    this.#all ??= sorted(textsIn(this.input));
    const { complete, heads } = this.#all;
    if (!complete) return true;
    // The first text that isn't before the prefix begins with it, if any does.
    let [low, high] = [0, heads.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((heads[middle] ?? "") < prefix) low = middle + 1;
      else high = middle;
    }
    return heads[low]?.startsWith(prefix) === true;
  }

  /** Empty where it isn't known what the call does. */
  get commands(): readonly ComparedCommand[] {
    this.#commands ??= commandsIn(this.input, this.tool?.inputSchema).map(({ text, isShell }) => {
      const plain = text.trim();
      return { begins: head(plain), doesMore: (isShell ? chaining : leaving).test(plain) };
    });
    return this.#commands;
  }
}

function sorted({ complete, heads }: ArgumentTexts): ArgumentTexts {
  // By code units, as `<` compares.
  return { complete, heads: heads.toSorted((one, other) => (one < other ? -1 : one > other ? 1 : 0)) };
}

/** What lets one line of a shell run a second command, or write a file. */
const chaining = /[;&|<>`\n\r]|\$\(/;
/** What makes a path or address lead elsewhere than its prefix suggests. */
const leaving = /(^|[\\/])\.\.([\\/]|$)/;
