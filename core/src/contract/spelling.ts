import { distance } from "fastest-levenshtein";

/** A key in lower case without `_` and `-`: `sandbox_permission` and `sandboxPermission` are the same. */
export function plainKey(key: string): string {
  return key.replaceAll(/[_-]/g, "").toLowerCase();
}

/** The edit distance of two spellings, if it is small enough for a typo; else undefined. */
export function slipBetween(word: string, known: string): number | undefined {
  if (word.length > 64) return undefined;
  const [one, other] = [plainKey(word), plainKey(known)];
  const edits = isSwap(one, other) ? 1 : distance(one, other);
  return edits <= Math.max(1, Math.floor(known.length / 3)) ? edits : undefined;
}

/** Whether two neighbouring letters are swapped, the most common typo. */
function isSwap(one: string, other: string): boolean {
  const at = [...one].findIndex((letter, index) => letter !== other[index]);
  if (at < 0 || one.length !== other.length) return false;
  return other === `${one.slice(0, at)}${one[at + 1] ?? ""}${one[at] ?? ""}${one.slice(at + 2)}`;
}

/** The known spelling that the word is probably a typo of; undefined when there is none, or more than one. */
export function nearestKey(word: string, known: readonly string[]): string | undefined {
  const suggestion = known
    .flatMap((candidate) => {
      const edits = slipBetween(word, candidate);
      return edits === undefined ? [] : [{ candidate, edits }];
    })
    .sort((one, other) => one.edits - other.edits);
  return suggestion[0]?.edits === suggestion[1]?.edits ? undefined : suggestion[0]?.candidate;
}
