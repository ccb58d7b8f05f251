import type { OutputChange } from "@ambit/core/contract";
import { globsOf } from "@ambit/workspace";
import type { Reading } from "./ask/terminal.js";

/** The changes that a typed line names, by their numbers in the list or by patterns of their paths. None for an empty line. Pure. */
export function readChosen(line: string, changes: readonly OutputChange[]): Reading<readonly OutputChange[]> {
  const chosen = new Set<OutputChange>();
  for (const word of line.split(/[\s,]+/).filter((one) => one !== "")) {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(word) ?? [];
    const named =
      first === undefined
        ? changes.filter(({ path }) => globsOf([word, `${word}/**`]).matches(path))
        : changes.slice(Math.max(0, Number(first) - 1), Number(last));
    if (named.length === 0)
      return { problem: `${word} names none of them: choose from 1 to ${changes.length}.` };
    for (const change of named) chosen.add(change);
  }
  return { value: changes.filter((change) => chosen.has(change)) };
}
