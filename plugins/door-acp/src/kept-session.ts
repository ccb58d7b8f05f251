import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { codeOf, isJsonObject, stateFolder } from "@ambit/core/plugin";
import { z } from "zod";

/** Sessions of one folder that are kept: the latest. */
const maxSessions = 100;
/** Turns of a session, and characters of it as JSON. Beyond, the oldest turns go. */
const maxTurns = 500;
const maxLength = 4 * 1_048_576;
const maxTitle = 80;

const blockSchema = z.custom<ContentBlock>((value) => isJsonObject(value) && typeof value.type === "string");

const updateSchema = z.custom<SessionUpdate>(
  (value) => isJsonObject(value) && typeof value.sessionUpdate === "string",
);

const keptSchema = z.strictObject({
  sessionId: z.string(),
  folder: z.string(),
  /** Milliseconds since 1970. */
  updatedAt: z.int(),
  title: z.string().optional(),
  mode: z.string().optional(),
  options: z.record(z.string(), z.string()).default({}),
  /** Tools that the user always allows. */
  allowed: z.array(z.string()).default([]),
  turns: z.array(z.strictObject({ prompt: z.array(blockSchema), updates: z.array(updateSchema) })),
});
/** A session of an editor, as it is shown again: its runs end with the process, and the editor's session outlives it. */
export type KeptSession = z.output<typeof keptSchema>;
export type KeptTurn = KeptSession["turns"][number];

/** Where sessions of a folder are, and how their ids begin. */
interface Place {
  readonly folder: string;
  readonly prefix: string;
}

const idPattern = /^acp_([0-9a-f]{16})_[0-9a-f-]{36}$/;

function placeOf(digest: string, parent: string): Place {
  return { folder: join(parent, digest), prefix: `acp_${digest}_` };
}

/** Forgets a session of any folder. */
export async function deleteSession(sessionId: string, parent = stateFolder("acp")): Promise<void> {
  const digest = idPattern.exec(sessionId)?.[1];
  if (digest !== undefined) await rm(fileOf(placeOf(digest, parent), sessionId), { force: true });
}

function fileOf({ folder }: Place, sessionId: string): string {
  return join(folder, `${sessionId}.json`);
}

/** The door's own sessions of one folder of the user's. Only this user can read them. */
export class KeptSessions {
  readonly #parent: string;
  readonly #place: Place;

  /** @param folder without links. @param parent default: the data folder. */
  constructor(
    readonly folder: string,
    parent = stateFolder("acp"),
  ) {
    this.#parent = parent;
    this.#place = placeOf(createHash("sha256").update(folder).digest("hex").slice(0, 16), parent);
  }

  newSession(): KeptSession {
    const sessionId = `${this.#place.prefix}${randomUUID()}`;
    return { sessionId, folder: this.folder, updatedAt: Date.now(), options: {}, allowed: [], turns: [] };
  }

  /** Undefined: it isn't one of this folder's. */
  async read(sessionId: string): Promise<KeptSession | undefined> {
    if (!idPattern.test(sessionId) || !sessionId.startsWith(this.#place.prefix)) return undefined;
    try {
      const stored = keptSchema.parse(JSON.parse(await readFile(fileOf(this.#place, sessionId), "utf8")));
      return stored.sessionId === sessionId && stored.folder === this.folder ? stored : undefined;
    } catch (error) {
      if (codeOf(error) === "ENOENT" || error instanceof z.ZodError || error instanceof SyntaxError)
        return undefined;
      throw error;
    }
  }

  /** In place of what was kept of it before. @returns what is kept */
  async keep(session: KeptSession): Promise<KeptSession> {
    const turns = session.turns.slice(-maxTurns);
    let shortened = { ...session, turns, updatedAt: Date.now(), title: session.title ?? titleOf(turns) };
    let text = JSON.stringify(shortened);
    while (text.length > maxLength && shortened.turns.length > 0) {
      shortened = { ...shortened, turns: shortened.turns.slice(Math.max(1, shortened.turns.length >> 2)) };
      text = JSON.stringify(shortened);
    }
    await mkdir(this.#place.folder, { recursive: true, mode: 0o700 });
    const file = fileOf(this.#place, session.sessionId);
    const draft = `${file}.${process.pid}`;
    await writeFile(draft, text, { mode: 0o600 });
    await rename(draft, file);
    await this.#forgetOldest();
    return shortened;
  }

  /** The latest first. */
  async list(): Promise<readonly KeptSession[]> {
    const names = await readdir(this.#place.folder).catch((error: unknown) => {
      if (codeOf(error) === "ENOENT") return [];
      throw error;
    });
    const ids = names.flatMap((name) => (name.endsWith(".json") ? [name.slice(0, -".json".length)] : []));
    const stored = await Promise.all(ids.map((id) => this.read(id)));
    return stored.filter((one) => one !== undefined).sort((one, other) => other.updatedAt - one.updatedAt);
  }

  async #forgetOldest(): Promise<void> {
    const names = await readdir(this.#place.folder);
    if (names.length <= maxSessions) return;
    for (const { sessionId } of (await this.list()).slice(maxSessions))
      await deleteSession(sessionId, this.#parent);
  }
}

function titleOf([first]: readonly KeptTurn[]): string | undefined {
  const text = first?.prompt
    .find((block) => block.type === "text")
    ?.text.replaceAll(/\s+/g, " ")
    .trim();
  return text === undefined || text === "" ? undefined : text.slice(0, maxTitle);
}
