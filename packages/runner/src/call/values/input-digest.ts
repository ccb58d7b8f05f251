import { createHash } from "node:crypto";
import { loopTurnSize, loopTurns } from "@ambit/core/plugin";
import { canonicalJson } from "../../canonical-json.js";
import { sizeOf } from "../../lifetime/memory/size.js";
import { comparable } from "./same-arguments.js";

/** Of large arguments, by the object that holds them. */
const known = new WeakMap<object, string>();

/** The same for equal arguments. A digest, since arguments may be long and only their equality counts. */
export function digestOf(input: unknown): string {
  const prepared = isObject(input) ? known.get(input) : undefined;
  return (
    prepared ??
    createHash("sha256")
      .update(canonicalJson(comparable(input)))
      .digest("base64url")
  );
}

/** Reads large arguments in turns of the event loop: their digest is known then. Their depth is limited. */
export async function prepareDigest(input: unknown): Promise<void> {
  if (!isObject(input) || known.has(input) || !isLarge(input)) return;
  const hash = createHash("sha256");
  for (const piece of canonicalPieces(comparable(input))) {
    hash.update(piece);
    await loopTurns.take(loopTurnSize);
  }
  known.set(input, hash.digest("base64url"));
}

/** `canonicalJson` in pieces that each take little time. */
function* canonicalPieces(value: unknown): Generator<string, void, undefined> {
  if (!isObject(value) || !isLarge(value)) {
    yield canonicalJson(value);
    return;
  }
  let piece = "";
  for (const part of partsOf(value)) {
    if (typeof part === "string") piece += part;
    else if (isLarge(part.value)) {
      yield piece;
      piece = "";
      yield* canonicalPieces(part.value);
    } else piece += canonicalJson(part.value);
    if (piece.length < loopTurnSize) continue;
    yield piece;
    piece = "";
  }
  yield piece;
}

/** What lies between the values of a list or an object, and the values, in the order of `canonicalJson`. */
function* partsOf(container: object): Generator<string | { readonly value: unknown }, void, undefined> {
  let separator = "";
  if (Array.isArray(container)) {
    yield "[";
    for (const value of container) {
      yield separator;
      yield { value };
      separator = ",";
    }
    yield "]";
    return;
  }
  yield "{";
  const entries = Object.entries(container).filter(([, value]) => value !== undefined);
  for (const [key, value] of entries.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))) {
    yield `${separator}${JSON.stringify(key)}:`;
    yield { value };
    separator = ",";
  }
  yield "}";
}

/** Whether arguments take more than one turn of the event loop. */
export function isLarge(value: unknown): boolean {
  return sizeOf(value, loopTurnSize) > loopTurnSize;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
