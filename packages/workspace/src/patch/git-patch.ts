import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { createDeflate } from "node:zlib";
import type { StructuredPatchHunk } from "diff";
import type { Spool, Spooled } from "../spool.js";

/** One side of a change. */
export interface PatchSide extends Spooled {
  readonly executable: boolean;
}

/** A file that was added, changed or deleted: at least one side. */
export interface PatchedFile {
  readonly path: string;
  readonly before: PatchSide | undefined;
  readonly after: PatchSide | undefined;
}

/** Bytes; a larger text is shown like a binary file. */
const maxTextBytes = 1_048_576;
/** Where git looks for a NUL, which makes a file binary. */
const binarySample = 8_000;
const noBlob = "0".repeat(40);

/** The changes in git's format, which `git apply` and `patch` read. Never runs git: nothing of the content is executed. */
export async function* gitPatch(
  files: readonly PatchedFile[],
  spool: Spool,
): AsyncGenerator<Buffer, void, undefined> {
  for (const file of files) yield* filePatch(file, spool);
}

async function* filePatch(file: PatchedFile, spool: Spool): AsyncGenerator<Buffer, void, undefined> {
  const { path, before, after } = file;
  yield Buffer.from(`diff --git ${nameOf("a", path)} ${nameOf("b", path)}\n${modesOf(file)}`);
  if (before?.sha256 === after?.sha256) return;
  const [from, to] = [await blobId(before, spool), await blobId(after, spool)];
  const mode = before !== undefined && after !== undefined && before.executable === after.executable;
  yield Buffer.from(`index ${from}..${to}${mode ? ` ${modeOf(after)}` : ""}\n`);
  const texts = [await textOf(before, spool), await textOf(after, spool)] as const;
  if (texts[0] !== undefined && texts[1] !== undefined) yield* textPatch(file, texts[0], texts[1]);
  else {
    yield Buffer.from("GIT binary patch\n");
    yield* literal(after, spool);
    yield* literal(before, spool);
  }
}

async function* textPatch(
  { path, before, after }: PatchedFile,
  old: string,
  now: string,
): AsyncGenerator<Buffer, void, undefined> {
  const hunks = await hunksOf(old, now);
  if (hunks === "") return;
  const from = before === undefined ? "/dev/null" : lineName("a", path);
  const to = after === undefined ? "/dev/null" : lineName("b", path);
  yield Buffer.from(`--- ${from}\n+++ ${to}\n`);
  yield Buffer.from(hunks, "latin1");
}

/** The whole content of one side, compressed. */
async function* literal(side: PatchSide | undefined, spool: Spool): AsyncGenerator<Buffer, void, undefined> {
  yield Buffer.from(`literal ${side?.size ?? 0}\n`);
  const content = side === undefined ? Readable.from([]) : Readable.from(spool.read(side));
  yield* base85Lines(content.pipe(createDeflate()));
  yield Buffer.from("\n");
}

function modesOf({ before, after }: PatchedFile): string {
  if (before === undefined) return `new file mode ${modeOf(after)}\n`;
  if (after === undefined) return `deleted file mode ${modeOf(before)}\n`;
  if (before.executable === after.executable) return "";
  return `old mode ${modeOf(before)}\nnew mode ${modeOf(after)}\n`;
}

const modeOf = (side: PatchSide | undefined) => (side?.executable === true ? "100755" : "100644");

/** The content as text, one character for each byte. Undefined for a binary or large file; empty for a missing one. */
async function textOf(side: PatchSide | undefined, spool: Spool): Promise<string | undefined> {
  if (side === undefined) return "";
  if (side.size > maxTextBytes) return undefined;
  const content = await spool.whole(side);
  return content.subarray(0, binarySample).includes(0) ? undefined : content.toString("latin1");
}

/** Git's name of a content. A binary patch is accepted only with it. */
async function blobId(side: PatchSide | undefined, spool: Spool): Promise<string> {
  if (side === undefined) return noBlob;
  const hash = createHash("sha1").update(`blob ${side.size}\0`);
  for await (const bytes of spool.read(side)) hash.update(bytes);
  return hash.digest("hex");
}

/** Quoted as git does, where the name needs it; control characters and backslashes never come here. */
function nameOf(side: "a" | "b", path: string): string {
  return path.includes('"') ? `"${side}/${path.replaceAll('"', '\\"')}"` : `${side}/${path}`;
}

/** With a tab behind a name with spaces, where git and patch end it. */
function lineName(side: "a" | "b", path: string): string {
  return nameOf(side, path) + (/\s/.test(path) ? "\t" : "");
}

const alphabet = Buffer.from(
  "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
);
const lineBytes = 52;

/** The lines of a binary patch: git's base 85, with the number of bytes of a line as a letter in front of it. */
async function* base85Lines(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void, undefined> {
  let partialLine: Buffer = Buffer.alloc(0);
  for await (const bytes of content) {
    const all = Buffer.concat([partialLine, bytes]);
    const whole = all.length - (all.length % lineBytes);
    if (whole > 0) yield linesOf(all.subarray(0, whole));
    partialLine = all.subarray(whole);
  }
  if (partialLine.length > 0) yield linesOf(partialLine);
}

function linesOf(bytes: Buffer): Buffer {
  const lines: number[] = [];
  for (let at = 0; at < bytes.length; at += lineBytes) {
    const line = bytes.subarray(at, at + lineBytes);
    lines.push(line.length <= 26 ? 64 + line.length : 96 + line.length - 26);
    for (let group = 0; group < line.length; group += 4) lines.push(...groupOf(line, group));
    lines.push(10);
  }
  return Buffer.from(lines);
}

/** Four bytes as five characters; zeros where there are fewer. */
function groupOf(line: Buffer, at: number): readonly number[] {
  let value = 0;
  for (let index = 0; index < 4; index += 1) value = value * 256 + (line[at + index] ?? 0);
  const group: number[] = [];
  for (let index = 0; index < 5; index += 1) {
    group.unshift(alphabet[value % 85] ?? 0);
    value = Math.floor(value / 85);
  }
  return group;
}

/** Lines that may differ before a file is shown as replaced: beyond, finding the shortest difference takes too long. */
const maxEditLength = 1_000;
/** Lines of a text, beyond which a file is shown as replaced too: no other caller is served while all its lines are read. */
const maxLines = 50_000;

/**
 * The difference of two texts as a patch has it. Texts hold one character for each byte, so that any encoding survives.
 * Others are served in between.
 */
async function hunksOf(before: string, after: string): Promise<string> {
  if (linesIn(before) > maxLines || linesIn(after) > maxLines) return replaced(before, after);
  // Loaded when it is needed: a server starts without it.
  const { structuredPatch } = await import("diff");
  const hunks = await new Promise<readonly StructuredPatchHunk[] | undefined>((resolve) => {
    structuredPatch("", "", before, after, "", "", {
      context: 3,
      maxEditLength,
      callback: (patch) => resolve(patch?.hunks),
    });
  });
  return hunks === undefined ? replaced(before, after) : hunks.map(hunkText).join("");
}

function hunkText({ oldStart, oldLines, newStart, newLines, lines }: StructuredPatchHunk): string {
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
