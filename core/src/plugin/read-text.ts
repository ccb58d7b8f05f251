import { StringDecoder } from "node:string_decoder";
import { SmallPieces } from "./small-pieces.js";
import { turnForText } from "./turn-for-one.js";

export interface TextRead {
  readonly text: string;
  /** False if there was more than the limit: the text ends there, and the source was left. */
  readonly isWhole: boolean;
}

/**
 * An input as UTF-8 text. A large one is returned in a turn of the event loop of its own, since it is parsed next.
 *
 * @param source null for an empty one, as the body of a request may be
 * @param maxBytes of it, at most
 */
export async function readText(
  source: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
): Promise<TextRead> {
  const text = new KeptText();
  let room = maxBytes;
  for await (const piece of source ?? []) {
    text.push(piece.subarray(0, room));
    room -= piece.length;
    if (room < 0) break;
  }
  await turnForText(maxBytes - room);
  return { text: text.take(), isWhole: room >= 0 };
}

/** The UTF-8 text of an input that is kept until it is complete. */
export class KeptText {
  readonly #decoder = new StringDecoder("utf8");
  readonly #small = new SmallPieces();
  readonly #texts: string[] = [];

  push(piece: Uint8Array): void {
    for (const whole of this.#small.push(piece)) this.#texts.push(this.#decoder.write(whole));
  }

  take(): string {
    for (const whole of this.#small.end()) this.#texts.push(this.#decoder.write(whole));
    return this.#texts.join("") + this.#decoder.end();
  }
}
