import type { FileChange } from "@ambit/core";

/** A change of a file in one line: `notes.md +3 -1`. Pure. */
export function changeLine({ path, oldText, newText, omitted }: FileChange): string {
  if (omitted !== undefined) return `${path} (${omitted.toLocaleString("en")} characters)`;
  const { added, removed } = lineChanges(linesOf(oldText ?? ""), linesOf(newText ?? ""));
  return `${path} ${oldText === undefined ? "new " : ""}+${added} -${removed}`;
}

/** Without the equal lines at the beginning and the end: exact for one edit, an upper bound for several. */
function lineChanges(before: readonly string[], after: readonly string[]) {
  const shared = Math.min(before.length, after.length);
  let first = 0;
  while (first < shared && before[first] === after[first]) first += 1;
  let last = 0;
  while (last < shared - first && before.at(-1 - last) === after.at(-1 - last)) last += 1;
  return { added: after.length - first - last, removed: before.length - first - last };
}

function linesOf(text: string): readonly string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}
