import { StringDecoder } from "node:string_decoder";
import { loopTurns, SmallPieces } from "@ambit/core/plugin";

/** To read and decode bytes costs that part of what other work on as many characters does. */
const readingCost = 1 / 4;

/**
 * A turn of the event loop to read a piece of an input in.
 * @returns undefined if it may be read now, else a promise that settles when it may
 */
export function turnToRead(piece: Uint8Array): Promise<void> | undefined {
  return loopTurns.take(piece.length * readingCost);
}

/**
 * The pieces of an input, each in a turn of the event loop, in which it may be split and looked through. The next one is asked for when this one was taken, so that a
 * source with back-pressure sends no faster than that, however many send at one time.
 */
export async function* inTurns<Piece extends Uint8Array>(
  source: AsyncIterable<Piece>,
): AsyncGenerator<Piece, void, undefined> {
  for await (const piece of source) {
    const turn = loopTurns.take(piece.length);
    if (turn !== undefined) await turn;
    yield piece;
  }
}

export interface TextRead {
  readonly text: string;
  /** False if there was more than the limit: the text ends there, and the source was left. */
  readonly isWhole: boolean;
}

/**
 * An input as UTF-8 text, read and decoded in turns of the event loop.
 *
 * @param source null for an empty one, as the body of a request may be
 * @param maxBytes of it, at most
 */
export async function textInTurns(
  source: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
): Promise<TextRead> {
  const decoder = new StringDecoder("utf8");
  const pieces = new SmallPieces();
  const texts: string[] = [];
  const decode = (whole: readonly Uint8Array[]) => {
    for (const one of whole) texts.push(decoder.write(one));
  };
  let room = maxBytes;
  for await (const piece of source ?? []) {
    const turn = turnToRead(piece);
    if (turn !== undefined) await turn;
    decode(pieces.push(piece.subarray(0, room)));
    room -= piece.length;
    if (room < 0) break;
  }
  decode(pieces.end());
  if (room >= 0) texts.push(decoder.end());
  return { text: texts.join(""), isWhole: room >= 0 };
}
