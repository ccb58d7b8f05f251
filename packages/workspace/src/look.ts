import { NotFound, OutputsFailed, RequestInvalid } from "@ambit/core";
import type { Sandbox } from "@ambit/core/plugin";
import { z } from "zod";
import { maxLineBytes, pathSchema } from "./collect.js";
import { type EntryKind, type LookRefusal, type LookWish, latestMs } from "./inside/wish.js";
import { askCollector, type ByteReader } from "./programs.js";

/** Names of one folder that are listed. */
const maxEntries = 2_000;

/** MiB of one file that is read. */
const maxMiB = 256;
const maxBytes = maxMiB * 1024 * 1024;

/** Milliseconds until a folder is listed, or a file's first byte comes: an agent can stop whatever runs in its sandbox. */
const timeoutMs = 30_000;

export interface WorkspaceEntry {
  readonly name: string;
  readonly kind: EntryKind;
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since 1970. */
  readonly modifiedAt: number;
  readonly executable: boolean;
}

export interface WorkspaceFolder {
  /** Sorted by name. */
  readonly entries: readonly WorkspaceEntry[];
  /** False: it has more than these, or some whose names aren't printable text. */
  readonly complete: boolean;
}

export interface WorkspaceFile {
  /** Bytes, when it was opened. */
  readonly size: number;
  readonly content: AsyncIterable<Uint8Array>;
}

/**
 * Lists one folder of a workspace, beside whatever runs in the sandbox. What git keeps isn't listed.
 * @param path relative to the workspace; empty: the workspace itself
 * @throws RequestInvalid, NotFound, OutputsFailed; the signal's reason
 */
export async function listFolder(
  sandbox: Sandbox,
  path: string,
  signal: AbortSignal,
): Promise<WorkspaceFolder> {
  if (path !== "") requirePath(path);
  const wish = wishOf(sandbox, "folder", path);
  return await looking(signal, (inTime) =>
    askCollector(sandbox, wish, (answers) => readFolder(answers, path), inTime),
  );
}

async function readFolder(answers: ByteReader, path: string): Promise<WorkspaceFolder> {
  const entries: WorkspaceEntry[] = [];
  for (;;) {
    const line = await answerOf(answers);
    if (line.type === "refused") throw refusal(line.reason, path);
    if (line.type === "listed") return { entries, complete: line.whole };
    if (line.type !== "entry") throw new Error(`a line '${line.type}' that doesn't belong there`);
    if (entries.length >= maxEntries) throw new Error("more names than were asked for");
    const { type: _type, ...entry } = line;
    entries.push(entry);
  }
}

/**
 * Reads one file of a workspace, as it is at that moment.
 * @param use gets the file, whose content can be read until it settles
 * @throws RequestInvalid, NotFound, OutputsFailed; what `use` throws of Ambit's errors; the signal's reason
 */
export async function readFile(
  sandbox: Sandbox,
  path: string,
  use: (file: WorkspaceFile) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  requirePath(path);
  const wish = wishOf(sandbox, "file", path);
  await looking(signal, (inTime, isInTime) =>
    askCollector(
      sandbox,
      wish,
      async (answers) => {
        const line = await answerOf(answers);
        if (line.type === "refused") throw refusal(line.reason, path);
        if (line.type !== "content") throw new Error(`a line '${line.type}' that doesn't belong there`);
        isInTime();
        await use({ size: line.size, content: answers.chunks(maxBytes) });
      },
      inTime,
    ),
  );
}

const wishOf = ({ workspace }: Sandbox, look: LookWish["look"], path: string): LookWish => ({
  look,
  workspace,
  path,
  maxEntries,
  maxBytes,
});

const lookPathSchema = pathSchema.refine(
  (path) => !path.split("/").some((name) => name === "" || name === "."),
  { error: "must have a name between two slashes, and none that is '.'" },
);

function requirePath(path: string): void {
  const { error } = lookPathSchema.safeParse(path);
  if (error !== undefined)
    throw new RequestInvalid(error.issues.map(({ message }) => ({ path: "path", message })));
}

async function looking<Result>(
  signal: AbortSignal,
  look: (inTime: AbortSignal, isInTime: () => void) => Promise<Result>,
): Promise<Result> {
  const late = new AbortController();
  const timer = setTimeout(
    () =>
      late.abort(new OutputsFailed(`The workspace wasn't read within ${timeoutMs / 1_000} s: try again.`)),
    timeoutMs,
  );
  try {
    return await look(AbortSignal.any([signal, late.signal]), () => clearTimeout(timer));
  } finally {
    clearTimeout(timer);
  }
}

const nameSchema = pathSchema.refine((name) => !name.includes("/"));
const factsShape = {
  size: z.int().min(0),
  modifiedAt: z.int().min(0).max(latestMs),
  executable: z.boolean(),
};

/** The answers of the program inside, which are checked since the sandbox's processes may have changed them. */
const answerSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("entry"),
    name: nameSchema,
    kind: z.enum(["folder", "file", "link", "special"]),
    ...factsShape,
  }),
  z.strictObject({ type: z.literal("listed"), whole: z.boolean() }),
  z.strictObject({ type: z.literal("content"), ...factsShape }),
  z.strictObject({
    type: z.literal("refused"),
    reason: z.enum([
      "missing",
      "link",
      "hard_link",
      "special",
      "folder",
      "not_folder",
      "unreadable",
      "too_large",
    ]),
  }),
]);

const answerOf = async (answers: ByteReader) =>
  answerSchema.parse(JSON.parse(await answers.line(maxLineBytes)));

/** What the path is, and what to do, by the reason of a refusal. */
const refusals: Readonly<Record<LookRefusal, string>> = {
  missing: "isn't in the workspace",
  link: "is a link, which isn't followed: name what it leads to",
  hard_link: "has several names, of which some may be outside of the workspace: copy it inside",
  special: "is a device, a pipe or a socket",
  folder: "is a folder: list it with ?path=",
  not_folder: "has a part that is a link or no folder, which isn't followed",
  unreadable: "can't be read by the sandbox's processes, or was exchanged meanwhile",
  too_large: `has more than ${maxMiB} MiB`,
};

const refusal = (reason: LookRefusal, path: string) =>
  new NotFound(`${JSON.stringify(path)} ${refusals[reason]}.`);
