import { loopTurnSize, loopTurns, pieceEnd } from "@ambit/core/plugin";

/** Characters of a value that is written in one step: well below a millisecond of work. */
const pieceLength = 32_768;

/**
 * The JSON of a value, in pieces that each take little time: a run's result may have tens of megabytes, and
 * `JSON.stringify` would block all other callers meanwhile. Joined, the pieces equal its output.
 * An empty piece means that as many characters were read, to see whether a value is divided.
 * For plain data: `toJSON` isn't called.
 */
export function* jsonPieces(value: unknown): Generator<string, void, undefined> {
  if (typeof value === "string") return yield* textPieces(value);
  if (typeof value !== "object" || value === null || !exceeds(value, pieceLength))
    return yield JSON.stringify(value) ?? "null";
  yield "";
  yield* Array.isArray(value) ? listPieces(value) : objectPieces(value);
}

/** The JSON of a value of any size, made in turns of the event loop. For plain data: `toJSON` isn't called. */
export async function jsonInTurns(value: unknown): Promise<string> {
  const texts: string[] = [];
  let size = 0;
  for (const piece of jsonPieces(value)) {
    texts.push(piece);
    size += piece === "" ? pieceLength : piece.length;
    if (size < loopTurnSize) continue;
    size = 0;
    await loopTurns.take(loopTurnSize);
  }
  return texts.join("");
}

function* textPieces(text: string): Generator<string, void, undefined> {
  if (text.length <= pieceLength) {
    yield JSON.stringify(text);
    return;
  }
  yield '"';
  for (let at = 0; at < text.length; ) {
    const end = Math.min(text.length, pieceEnd(text, at + pieceLength));
    yield JSON.stringify(text.slice(at, end)).slice(1, -1);
    at = end;
  }
  yield '"';
}

function* listPieces(list: readonly unknown[]): Generator<string, void, undefined> {
  let separator = "[";
  for (const item of list) {
    yield separator;
    yield* jsonPieces(item ?? null);
    separator = ",";
  }
  yield separator === "[" ? "[]" : "]";
}

function* objectPieces(object: object): Generator<string, void, undefined> {
  let separator = "{";
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    yield `${separator}${JSON.stringify(key)}:`;
    yield* jsonPieces(value);
    separator = ",";
  }
  yield separator === "{" ? "{}" : "}";
}

/** Whether a value has more characters and values than that. Stops as soon as that is known. */
function exceeds(value: unknown, max: number): boolean {
  let room = max;
  const open: unknown[] = [value];
  while (open.length > 0 && room >= 0) {
    const next = open.pop();
    room -= typeof next === "string" ? next.length + 1 : 1;
    if (typeof next !== "object" || next === null) continue;
    const inner: unknown[] = Object.values(next);
    if (inner.length > room) return true;
    for (const one of inner) open.push(one);
  }
  return room < 0;
}
