import { type StructuredPatchHunk, structuredPatch } from "diff";

/** Lines that may differ before a file is shown as replaced: beyond, finding the shortest difference takes too long. */
const maxEditLength = 1_000;
/** Lines of a text, beyond which a file is shown as replaced too: no other caller is served while all its lines are read. */
const maxLines = 50_000;

/**
 * The difference of two texts as a patch has it. Texts hold one character for each byte, so that any encoding survives.
 * Others are served in between.
 */
export async function hunksOf(before: string, after: string): Promise<string> {
  if (linesIn(before) > maxLines || linesIn(after) > maxLines) return replaced(before, after);
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
  const old = linesIn(before);
  const now = linesIn(after);
  const head = `@@ -${old === 0 ? 0 : 1},${old} +${now === 0 ? 0 : 1},${now} @@\n`;
  return head + marked("-", before) + marked("+", after);
}

/** Each line with the sign before it. */
function marked(sign: string, text: string): string {
  if (text === "") return "";
  const isWhole = text.endsWith("\n");
  const lines = (isWhole ? text.slice(0, -1) : text).replaceAll("\n", `\n${sign}`);
  return `${sign}${lines}\n${isWhole ? "" : "\\ No newline at end of file\n"}`;
}

function linesIn(text: string): number {
  let count = text === "" || text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}
