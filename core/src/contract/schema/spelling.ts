import { distance } from "fastest-levenshtein";

/** A key without what spellings differ in: `sandbox_permission` and `sandboxPermission` are the same. */
export function plainKey(key: string): string {
  return key.replaceAll(/[_-]/g, "").toLowerCase();
}

/** How many edits lie between two spellings, where they are few enough for a slip; else undefined. */
export function slipBetween(word: string, known: string): number | undefined {
  if (word.length > 64) return undefined;
  const [one, other] = [plainKey(word), plainKey(known)];
  const edits = isSwap(one, other) ? 1 : distance(one, other);
  return edits <= Math.max(1, Math.floor(known.length / 3)) ? edits : undefined;
}

/** Whether two neighbouring letters changed places: the commonest slip of all. */
function isSwap(one: string, other: string): boolean {
  const at = [...one].findIndex((letter, index) => letter !== other[index]);
  if (at < 0 || one.length !== other.length) return false;
  return other === `${one.slice(0, at)}${one[at + 1] ?? ""}${one[at] ?? ""}${one.slice(at + 2)}`;
}

/** The one spelling close enough to be a slip; undefined when there is none, or a choice between several. */
export function nearestKey(word: string, known: readonly string[]): string | undefined {
  const near = known
    .flatMap((candidate) => {
      const edits = slipBetween(word, candidate);
      return edits === undefined ? [] : [{ candidate, edits }];
    })
    .sort((one, other) => one.edits - other.edits);
  return near[0]?.edits === near[1]?.edits ? undefined : near[0]?.candidate;
}
