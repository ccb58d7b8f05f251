import { createWriteStream } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { OutputChange, OutputsReceipt } from "@ambit/core/contract";
import type { KeptOutputs } from "@ambit/workspace";
import { printable, printableLine } from "../../logging/printable.js";
import { colors } from "../display/colors.js";
import { exitCodes } from "../exit-codes.js";
import { applyChange, type Conflict, conflictsIn } from "./apply.js";
import { choose, type Terminal } from "./ask/terminal.js";

/** Characters of a patch that are shown. */
const maxShown = 100_000;
/** Changes that are named where the patch is longer. */
const maxNamed = 200;

export interface TakeBackOptions {
  /** Undefined: nothing can be applied. */
  readonly folder: string | undefined;
  /** Undefined: the terminal is asked. */
  readonly apply: boolean | undefined;
  /** A file for the patch. */
  readonly patch: string | undefined;
  /** Undefined without one. */
  readonly terminal: Terminal | undefined;
  readonly print: (text: string) => Promise<void>;
  /** Ends the question whether to apply. */
  readonly signal?: AbortSignal | undefined;
}

/** Shows what the run changed, and brings it into the user's folder if they say so. @returns the exit code */
export async function takeBack(
  kept: KeptOutputs,
  receipt: OutputsReceipt,
  options: TakeBackOptions,
): Promise<number> {
  const { folder, terminal, print, signal } = options;
  const changes = receipt.patch?.changes ?? [];
  for (const { path, reason } of receipt.omitted)
    await print(`left out: ${printableLine(path)} (${reason})\n`);
  if (options.patch !== undefined) await savePatch(kept, options.patch);
  if (changes.length === 0) {
    await print("no changes\n");
    return exitCodes.ok;
  }
  await print(await shownPatch(kept, changes));
  if (folder === undefined || options.apply === false) return exitCodes.ok;
  if (options.apply === undefined) {
    if (terminal === undefined) return exitCodes.ok;
    const count = `${changes.length} ${changes.length === 1 ? "change" : "changes"}`;
    const given = await choose(
      terminal,
      colors.bold(`Apply ${count} to ${folder}? [y/n] `),
      /^(y(es)?|no?)$/,
      signal,
    ).catch(async (error: unknown) => {
      if (signal?.aborted !== true) throw error;
      await print("\nnothing was applied\n");
      return undefined;
    });
    if (given === undefined) return exitCodes.interrupted;
    if (given.startsWith("n")) return exitCodes.ok;
  }
  const conflicts = await conflictsIn(folder, changes);
  if (conflicts.length > 0) return await refuse(conflicts, "nothing was applied", kept, options);
  const late: Conflict[] = [];
  for (const change of changes) {
    const content = change.change === "deleted" ? undefined : await kept.file(change.path);
    if (change.change !== "deleted" && content === undefined) throw new Error(`${change.path} wasn't kept`);
    const reason = await applyChange(folder, change, content?.content ?? Readable.from([]));
    if (reason !== undefined) late.push({ path: change.path, reason });
  }
  if (late.length > 0) {
    const applied = `applied ${changes.length - late.length} of ${changes.length} changes to ${folder}`;
    return await refuse(late, applied, kept, options);
  }
  await print(`applied ${changes.length} ${changes.length === 1 ? "change" : "changes"} to ${folder}\n`);
  return exitCodes.ok;
}

/** Names the conflicts, and keeps the patch. @param outcome what became of the changes. @returns the exit code */
async function refuse(
  conflicts: readonly Conflict[],
  outcome: string,
  kept: KeptOutputs,
  { patch, print }: TakeBackOptions,
): Promise<number> {
  const file = patch ?? join(await mkdtemp(join(tmpdir(), "ambit-patch-")), "run.patch");
  if (patch === undefined) await savePatch(kept, file);
  for (const { path, reason } of conflicts)
    await print(`${colors.red("conflict")}: ${printableLine(path)}: ${reason}\n`);
  await print(`${outcome}; the patch is in ${file}\n`);
  return exitCodes.runFailed;
}

async function savePatch(kept: KeptOutputs, file: string): Promise<void> {
  const patch = await kept.patch();
  await pipeline(Readable.from(patch?.content ?? []), createWriteStream(file, { mode: 0o600 }));
}

async function shownPatch(kept: KeptOutputs, changes: readonly OutputChange[]): Promise<string> {
  const patch = await kept.patch();
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of patch?.content ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > maxShown) break;
  }
  const isCut = text.length > maxShown;
  const lines = printable(text.slice(0, maxShown)).trimEnd().split("\n").map(colored);
  if (!isCut) return `${lines.join("\n")}\n`;
  const more = `… ${patch?.size ?? 0} bytes in all: --patch <file> keeps the whole patch`;
  return `${[...lines, more, ...namesOf(changes)].join("\n")}\n`;
}

/** What changes, where not all of it is shown. */
function namesOf(changes: readonly OutputChange[]): readonly string[] {
  const names = changes.slice(0, maxNamed).map(({ change, path }) => printableLine(`${change}: ${path}`));
  const left = changes.length - names.length;
  return left === 0 ? names : [...names, `and ${left} more`];
}

function colored(line: string): string {
  if (/^(diff --git|index|new file|deleted file|old mode|new mode|---|\+\+\+) ?/.test(line))
    return colors.bold(line);
  if (line.startsWith("@@")) return colors.cyan(line);
  if (line.startsWith("+")) return colors.green(line);
  return line.startsWith("-") ? colors.red(line) : line;
}
