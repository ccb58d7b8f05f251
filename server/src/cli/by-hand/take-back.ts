import { createWriteStream } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { OutputChange, OutputsReceipt } from "@ambit/core/contract";
import { globsOf, type KeptOutputs } from "@ambit/workspace";
import { printable, printableLine } from "../../logging/printable.js";
import { colors } from "../display/layout.js";
import { exitCodes } from "../exit-codes.js";
import { applyChange, type Conflict, conflictsIn } from "./apply.js";
import { askLine, choose, type Reading, type Terminal } from "./ask/terminal.js";

/** Characters of a patch that are shown. */
const maxShown = 100_000;
/** Changes that are listed. */
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
  const { folder, terminal, print } = options;
  const changes = receipt.patch?.changes ?? [];
  await showChanges(kept, receipt, options);
  if (changes.length === 0 || folder === undefined || options.apply === false) return exitCodes.ok;
  if (options.apply === true) return await applyTo(folder, changes, kept, options);
  if (terminal === undefined) return exitCodes.ok;
  const chosen = await askWhich(terminal, folder, changes, kept, options);
  if (chosen === undefined) {
    await print("\nnothing was applied\n");
    return exitCodes.interrupted;
  }
  if (chosen.length === 0) return exitCodes.ok;
  const code = await applyTo(folder, chosen, kept, options);
  const left = changes.length - chosen.length;
  if (left > 0) await print(`${countOf(left)} not applied\n`);
  return code;
}

/** Lists what the run changed, then shows the patch: in a pager where it is longer than the screen. */
export async function showChanges(
  kept: KeptOutputs,
  receipt: OutputsReceipt,
  { patch, terminal, print, signal }: Pick<TakeBackOptions, "patch" | "terminal" | "print" | "signal">,
): Promise<void> {
  const changes = receipt.patch?.changes ?? [];
  for (const { path, reason } of receipt.omitted)
    await print(`left out: ${printableLine(path)} (${reason})\n`);
  if (patch !== undefined) await savePatch(kept, patch);
  if (changes.length === 0) return await print("no changes\n");
  await print(`${listOf(changes).join("\n")}\n`);
  const { lines, isCut, size } = await shownPatch(kept);
  const list = Math.min(changes.length, maxNamed) + 3;
  if (terminal !== undefined && !fitsScreen(lines.length + list)) {
    // Whole, however long it is.
    if (await showInPager(patchLines(kept), signal)) return;
  }
  const more = `… ${size} bytes in all: --patch <file> keeps the whole patch`;
  await print(`${[...lines, ...(isCut ? [more] : [])].join("\n")}\n`);
}

/** @returns those to apply; undefined when the question was ended */
async function askWhich(
  terminal: Terminal,
  folder: string,
  changes: readonly OutputChange[],
  kept: KeptOutputs,
  { signal, print }: TakeBackOptions,
): Promise<readonly OutputChange[] | undefined> {
  const isOne = changes.length === 1;
  const answers = isOne ? "[y]es, [n]o, [d]iff" : "[y]es, [n]o, [s]ome, [d]iff";
  const text = colors.bold(`Apply ${countOf(changes.length)} to ${folder}? ${answers} `);
  const choices = isOne ? /^(y(es)?|no?|d(iff)?)$/ : /^(y(es)?|no?|s(ome)?|d(iff)?)$/;
  try {
    for (;;) {
      const answer = await choose(terminal, text, choices, signal);
      if (answer.startsWith("y")) return changes;
      if (answer.startsWith("n")) return [];
      if (answer.startsWith("s")) {
        const which = "Which? Numbers (1 3-5) or patterns (src/**); an empty line takes none: ";
        const read = (line: string) => readChosen(line, changes);
        return (await askLine(terminal, colors.bold(which), read, signal)) ?? [];
      }
      if (await showInPager(patchLines(kept), signal)) continue;
      for await (const line of patchLines(kept)) await print(line);
    }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
    return undefined;
  }
}

async function applyTo(
  folder: string,
  changes: readonly OutputChange[],
  kept: KeptOutputs,
  options: TakeBackOptions,
): Promise<number> {
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
  await options.print(`applied ${countOf(changes.length)} to ${folder}\n`);
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

/** How many there are of each kind, then their paths: `A 3 M 2 D 1`. Pure. */
export function listOf(changes: readonly Pick<OutputChange, "change" | "path">[]): readonly string[] {
  const counts = (["added", "modified", "deleted"] as const).flatMap((kind) => {
    const count = changes.filter(({ change }) => change === kind).length;
    return count === 0 ? [] : [letterOf(kind, ` ${count}`)];
  });
  const width = String(changes.length).length;
  const names = changes.slice(0, maxNamed).map(({ change, path }, index) => {
    const number = String(index + 1).padStart(width);
    return `  ${number}  ${letterOf(change)} ${printableLine(path)}`;
  });
  const left = changes.length - names.length;
  return [counts.join(" "), ...names, ...(left === 0 ? [] : [`  and ${left} more`])];
}

const letters = {
  added: (text: string) => colors.green(`A${text}`),
  modified: (text: string) => colors.yellow(`M${text}`),
  deleted: (text: string) => colors.red(`D${text}`),
} as const;

const letterOf = (change: OutputChange["change"], text = "") => letters[change](text);

const countOf = (count: number) => `${count} ${count === 1 ? "change" : "changes"}`;

/** The beginning of the patch, in lines. */
async function shownPatch(kept: KeptOutputs) {
  const lines: string[] = [];
  let length = 0;
  let isCut = false;
  for await (const line of patchLines(kept)) {
    length += line.length;
    isCut = length > maxShown;
    if (isCut) break;
    lines.push(line.trimEnd());
  }
  const size = (await kept.patch())?.size ?? 0;
  return { lines, isCut, size };
}

/** The patch, line by line, in colours. A line that is too long to be shown is cut. */
async function* patchLines(kept: KeptOutputs): AsyncGenerator<string, void, undefined> {
  const patch = await kept.patch();
  const decoder = new TextDecoder();
  let begun = "";
  for await (const bytes of patch?.content ?? []) {
    const lines = (begun + decoder.decode(bytes, { stream: true })).split("\n");
    begun = lines.pop() ?? "";
    for (const line of lines) yield `${colored(printable(line.slice(0, maxShown)))}\n`;
    if (begun.length > maxShown) {
      yield `${colored(printable(begun.slice(0, maxShown)))}…\n`;
      begun = "";
    }
  }
  if (begun !== "") yield `${colored(printable(begun))}\n`;
}

function colored(line: string): string {
  if (/^(diff --git|index|new file|deleted file|old mode|new mode|---|\+\+\+) ?/.test(line))
    return colors.bold(line);
  if (line.startsWith("@@")) return colors.cyan(line);
  if (line.startsWith("+")) return colors.green(line);
  return line.startsWith("-") ? colors.red(line) : line;
}

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

/** Whether so many lines, and a question below them, fit the terminal. */
function fitsScreen(lines: number): boolean {
  // A terminal that doesn't know its size has none, or 0.
  return lines < (process.stdout.rows || 24);
}

/**
 * Shows lines in the user's pager (`PAGER`, by default `less`), until they leave it. Empty, or `cat`, means none.
 * @param signal ends it
 * @returns false without a pager, or where it can't be started
 */
async function showInPager(lines: AsyncIterable<string>, signal?: AbortSignal): Promise<boolean> {
  const pager = process.env.PAGER ?? "less";
  if (pager === "" || pager === "cat" || process.platform === "win32") return false;
  // These are the options that git gives `less`: it shows colours, and leaves a short text on the screen.
  const { execa } = await import("execa");
  const shown = execa("/bin/sh", ["-c", pager], {
    env: { LESS: "FRX", ...process.env },
    extendEnv: false,
    stdin: "pipe",
    stdout: "inherit",
    stderr: "inherit",
    reject: false,
    cancelSignal: signal,
    // Ctrl-C is the pager's, and the command's own handlers'.
    cleanup: false,
  });
  // It needn't read all of it.
  await pipeline(Readable.from(lines), shown.stdin).catch(() => undefined);
  const { exitCode: code } = await shown;
  // A shell's way to say that there is no such program.
  return code !== 127 && code !== 126;
}
