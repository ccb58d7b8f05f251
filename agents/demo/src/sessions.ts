import { randomUUID } from "node:crypto";
import { appendFile, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

const entrySchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("user"), text: z.string() }),
  z.strictObject({ kind: z.literal("message"), text: z.string() }),
  z.strictObject({ kind: z.literal("thought"), text: z.string() }),
  z.strictObject({
    kind: z.literal("tool"),
    toolCallId: z.string(),
    title: z.string(),
    failed: z.boolean(),
    text: z.string(),
  }),
]);

/** The events of a session, in order. Consecutive chunks of one kind are one entry. */
export type HistoryEntry = z.infer<typeof entrySchema>;

/** A session's conversation, kept as `<id>.jsonl`, one {@link HistoryEntry} per line, appended turn by turn. */
export class History {
  readonly #file: string;
  readonly #entries: HistoryEntry[];
  #saved: number;
  #saving: Promise<unknown>;

  /** The first write waits for `folderReady`. */
  constructor(file: string, entries: readonly HistoryEntry[], folderReady: Promise<unknown>) {
    this.#saving = folderReady;
    this.#file = file;
    this.#entries = [...entries];
    this.#saved = entries.length;
  }

  get entries(): readonly HistoryEntry[] {
    return this.#entries;
  }

  add(entry: HistoryEntry): void {
    const last = this.#entries.at(-1);
    const open = this.#entries.length > this.#saved;
    if (
      open &&
      last !== undefined &&
      last.kind === entry.kind &&
      (last.kind === "message" || last.kind === "thought")
    ) {
      last.text += entry.text;
    } else {
      this.#entries.push(entry);
    }
  }

  /** Appends new entries. Rejects with the file system's error; the session itself continues without its file. */
  save(): Promise<void> {
    const lines = this.#entries.slice(this.#saved).map((entry) => `${JSON.stringify(entry)}\n`);
    this.#saved = this.#entries.length;
    const saving = this.#saving.then(() => appendFile(this.#file, lines.join(""), { mode: 0o600 }));
    this.#saving = saving;
    return saving;
  }
}

/** The sessions of one home, under `<home>/.ambit-demo/sessions`. */
export class SessionStore {
  readonly #folder: string;

  constructor(home: string) {
    this.#folder = join(home, ".ambit-demo", "sessions");
  }

  /** A new session's id and its empty history. Once saved, even before its first turn, it can be loaded. */
  create(): { readonly id: string; readonly history: History } {
    const id = randomUUID();
    const folderReady = mkdir(this.#folder, { recursive: true, mode: 0o700 });
    return { id, history: new History(this.#fileOf(id), [], folderReady) };
  }

  /**
   * The history of an earlier session, or `undefined` if there is none.
   *
   * @throws Error when its file contains a line that isn't a {@link HistoryEntry}.
   */
  async load(id: string): Promise<History | undefined> {
    // The id comes from outside and is used as a file name.
    if (!z.uuid().safeParse(id).success) return undefined;
    const file = this.#fileOf(id);
    let text: string;
    try {
      text = await readFile(file, "utf8");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
    const lines = text.split("\n").filter((line) => line !== "");
    return new History(file, lines.map(parseEntry), Promise.resolve());
  }

  #fileOf(id: string): string {
    return join(this.#folder, `${id}.jsonl`);
  }
}

function parseEntry(line: string, index: number): HistoryEntry {
  try {
    return entrySchema.parse(JSON.parse(line));
  } catch (cause) {
    throw new Error(`The saved session is damaged at line ${index + 1}: start a new session`, { cause });
  }
}
