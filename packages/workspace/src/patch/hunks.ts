import { type StructuredPatchHunk, structuredPatch } from "diff";

/** Lines that may differ before a file is shown as replaced: beyond, finding the shortest difference takes too long. */
const maxEditLength = 1_000;

/**
 * The difference of two texts as a patch has it. Texts hold one character for each byte, so that any encoding survives.
 * Others are served in between.
 */
export async function hunksOf(before: string, after: string): Promise<string> {
  const found = await new Promise<readonly StructuredPatchHunk[] | undefined>((resolve) => {
    structuredPatch("", "", before, after, "", "", {
      context: 3,
      maxEditLength,
      callback: (patch) => resolve(patch?.hunks),
    });
  });
  return found === undefined ? replaced(before, after) : found.map(textOf).join("");
}

function textOf({ oldStart, oldLines, newStart, newLines, lines }: StructuredPatchHunk): string {
  // An empty side begins before its first line.
  const from = oldLines === 0 && oldStart === 1 ? 0 : oldStart;
  const to = newLines === 0 && newStart === 1 ? 0 : newStart;
  return `@@ -${from},${oldLines} +${to},${newLines} @@\n${lines.map((line) => `${line}\n`).join("")}`;
}

function replaced(before: string, after: string): string {
  const old = linesOf(before);
  const now = linesOf(after);
  const side = (sign: string, lines: readonly string[], text: string) =>
    lines.map((line) => `${sign}${line}\n`).join("") +
    (text === "" || text.endsWith("\n") ? "" : "\\ No newline at end of file\n");
  const head = `@@ -${old.length === 0 ? 0 : 1},${old.length} +${now.length === 0 ? 0 : 1},${now.length} @@\n`;
  return head + side("-", old, before) + side("+", now, after);
}

function linesOf(text: string): readonly string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}
