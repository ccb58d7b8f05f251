import { distance } from "fastest-levenshtein";

/** A key in lower case without `_` and `-`: `sandbox_permission` and `sandboxPermission` are the same. */
export function plainKey(key: string): string {
  return key.replaceAll(/[_-]/g, "").toLowerCase();
}

/** The edit distance of two spellings, if it is small enough for a typo; else undefined. */
export function slipBetween(word: string, spelling: string): number | undefined {
  if (word.length > 64) return undefined;
  const [first, other] = [plainKey(word), plainKey(spelling)];
  const edits = isSwap(first, other) ? 1 : distance(first, other);
  return edits <= Math.max(1, Math.floor(spelling.length / 3)) ? edits : undefined;
}

/** Whether two neighbouring letters are swapped, the most common typo. */
function isSwap(first: string, other: string): boolean {
  const at = [...first].findIndex((letter, index) => letter !== other[index]);
  if (at < 0 || first.length !== other.length) return false;
  return other === `${first.slice(0, at)}${first[at + 1] ?? ""}${first[at] ?? ""}${first.slice(at + 2)}`;
}

/** The known spelling that the word is probably a typo of; undefined when there is none, or more than one. */
export function nearestKey(word: string, keys: readonly string[]): string | undefined {
  const suggestion = keys
    .flatMap((candidate) => {
      const edits = slipBetween(word, candidate);
      return edits === undefined ? [] : [{ candidate, edits }];
    })
    .sort((earlier, later) => earlier.edits - later.edits);
  return suggestion[0]?.edits === suggestion[1]?.edits ? undefined : suggestion[0]?.candidate;
}
