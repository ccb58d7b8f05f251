import { OutputsFailed } from "@ambit/core";
import { type OmissionReason, workspaceFileSchema } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import { z } from "zod";
import { isGitFolder } from "./inside/paths.js";
import type { Wish } from "./inside/wish.js";
import { askCollector, type ByteReader } from "./programs.js";
import type { Spool, Spooled } from "./spool.js";

/** Bytes of one line. */
export const maxLineBytes = 65_536;

const printableSchema = workspaceFileSchema.regex(
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  /^[^\u0000-\u001f\u007f]*$/,
  "must not contain control characters",
);

/** The path of a file that may leave. */
export const pathSchema = printableSchema.refine((path) => !path.split("/").some(isGitFolder), {
  error: "must not lead to what git keeps, which isn't part of a workspace's files",
});

/** The answers of the program inside, which are checked since the sandbox's processes may have changed them. */
const answerSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("file"),
    path: pathSchema,
    executable: z.boolean(),
    included: z.boolean(),
  }),
  z.strictObject({ type: z.literal("end"), whole: z.boolean() }),
  z.strictObject({ type: z.literal("deleted"), path: pathSchema }),
  z.strictObject({
    type: z.literal("omitted"),
    path: z.string().max(8_192),
    reason: z.enum(["link", "hard_link", "special", "name", "unreadable", "too_large", "too_many"]),
    state: z.string().max(8_192),
  }),
  z.strictObject({ type: z.literal("too_many_entries") }),
  z.strictObject({ type: z.literal("done") }),
]);
type CheckedAnswer = z.infer<typeof answerSchema>;

export interface CollectedFile extends Spooled {
  readonly path: string;
  readonly executable: boolean;
  readonly included: boolean;
}

export interface Omission {
  readonly path: string;
  readonly reason: OmissionReason;
  readonly state: string;
}

/** The files that left the sandbox. */
export interface Collected {
  readonly files: readonly CollectedFile[];
  /** Paths that were known, and are gone. */
  readonly deleted: readonly string[];
  /** The first ones. */
  readonly omitted: readonly Omission[];
  readonly omittedMore: number;
}

/** Paths with a reason that are kept; further ones are counted. */
const maxOmitted = 10_000;

/** Characters of all paths: a sandbox that lies could send any. */
const maxPathCharacters = 64 * 1024 * 1024;

/** Takes out of the workspace what the wish names, and spools it. @throws OutputsFailed; the signal's reason */
export function collect(sandbox: Sandbox, wish: Wish, spool: Spool, signal: AbortSignal): Promise<Collected> {
  return askCollector(sandbox, wish, (answers) => new Reading(answers, wish, spool).run(), signal);
}

/** The sandbox's answers, within what was asked for. */
class Reading {
  readonly #files = new Map<string, CollectedFile>();
  readonly #deleted = new Set<string>();
  readonly #omitted: Omission[] = [];
  #omittedMore = 0;
  #bytes = 0;
  #characters = 0;

  constructor(
    readonly reader: ByteReader,
    readonly wish: Wish,
    readonly spool: Spool,
  ) {}

  async run(): Promise<Collected> {
    const { maxEntries } = this.wish;
    const known = new Set(this.wish.known.map(([path]) => path));
    for (;;) {
      const line = answerSchema.parse(JSON.parse(await this.reader.line(maxLineBytes)));
      if (line.type === "done") break;
      if (line.type === "too_many_entries")
        throw new OutputsFailed(
          `The workspace has more than ${maxEntries} files and folders: no file was taken out. Remove some, or raise workspace.maxEntries of the server's configuration.`,
        );
      if (line.type === "file") await this.#file(line);
      else if (line.type === "deleted" && known.has(line.path)) this.#deleted.add(line.path);
      else if (line.type === "omitted") this.#omit(line);
      else throw new Error(`a line '${line.type}' that doesn't belong there`);
    }
    return {
      files: [...this.#files.values()],
      deleted: [...this.#deleted],
      omitted: this.#omitted,
      omittedMore: this.#omittedMore,
    };
  }

  #omit({ path, reason, state }: Omission): void {
    if (this.#omitted.length >= maxOmitted) this.#omittedMore += 1;
    else this.#omitted.push({ path, reason, state });
    this.#count(path);
  }

  #count(path: string): void {
    this.#characters += path.length;
    if (this.#characters > maxPathCharacters) throw new Error("too many characters of paths");
  }

  async #file({ path, executable, included }: CheckedAnswer & { type: "file" }): Promise<void> {
    this.#count(path);
    if (this.#files.has(path)) throw new Error("a file that came twice");
    if (this.#files.size >= this.wish.maxFiles) throw new Error("more files than were asked for");
    const content = await this.spool.add(this.reader.chunks(this.wish.maxBytes - this.#bytes));
    this.#bytes += content.size;
    const end = answerSchema.parse(JSON.parse(await this.reader.line(maxLineBytes)));
    if (end.type !== "end") throw new Error("a file without an end");
    if (end.whole) this.#files.set(path, { path, executable, included, ...content });
    else this.#omit({ path, reason: "changed", state: "changed" });
  }
}
