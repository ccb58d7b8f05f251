import { realpath, stat } from "node:fs/promises";
import type { RunRequest } from "@ambit/core/contract";
import { type UserFolder, type UserFolderEnd, type UserFolderRun, unlessAborted } from "@ambit/core/plugin";
import { ConfigurationInvalid } from "../../../configuration/problems.js";
import { printableLine } from "../../../logging/printable.js";
import { FolderSnapshot } from "./folder-snapshot.js";
import { guardedPaths } from "./guarded-paths.js";

/** Paths that a boundary can name. */
const maxGuarded = 100;

/** What the agent can't change, and can't reach, in the folder that it works in. */
export interface GuardedPaths {
  readonly readable: readonly string[];
  readonly denied: readonly string[];
}

/** A run in the user's folder itself. */
export class InPlace {
  readonly #snapshot: FolderSnapshot;
  #missing: readonly string[] = [];

  /** @param folder without links in its path */
  constructor(readonly folder: string) {
    this.#snapshot = FolderSnapshot.of(folder);
  }

  /** Keeps the folder's contents. @throws ConfigurationInvalid for a folder that is too large, or has too many repositories */
  async prepare(): Promise<GuardedPaths> {
    const { repositories } = await this.#snapshot.prepare();
    const { present, missing } = await guardedPaths(this.folder);
    this.#missing = missing;
    const readable = [...new Set([...repositories, ...present])];
    if (readable.length > maxGuarded)
      throw new ConfigurationInvalid(this.folder, [
        `has more than ${maxGuarded} repositories, or files that git runs, in it: name a folder below it, or leave --in-place out`,
      ]);
    // An agent must not make it a repository: git would run what that one configures.
    return { readable, denied: repositories.includes(".git") ? [] : [".git"] };
  }

  async begin(): Promise<void> {
    await this.#snapshot.begin();
  }

  /** @returns undefined where the run hasn't begun, or this was called before */
  async ended(): Promise<UserFolderEnd | undefined> {
    const ended = await this.#snapshot.ended(this.#missing);
    if (ended === undefined) return undefined;
    const { disarmed, isChanged } = ended;
    return { disarmed, undo: isChanged ? undoCommand(this.folder) : undefined };
  }
}

/** What to say of a run's end. Pure. */
export function endLines({ disarmed, undo }: UserFolderEnd): string {
  const named = disarmed.map(
    (path) => `disarmed: ${printableLine(path)}: the run made it, and git would run what it has\n`,
  );
  return `${named.join("")}${undo === undefined ? "" : `to go back: ${undo}\n`}`;
}

function undoCommand(folder: string): string {
  return `ambit undo ${/^[\w@%+=:,./-]+$/.test(folder) ? folder : `'${folder.replaceAll("'", "'\\''")}'`}`;
}

/** What a refusal says besides its reason. */
interface FolderUse {
  /** What asks for the folder: `--in-place`. */
  readonly option: string;
  /** What the folder's owner would run. */
  readonly command: string;
  /** What else can be done. Absent: nothing. */
  readonly instead?: string;
}

/**
 * A folder of this host that may be a workspace itself, without links in its path.
 * @throws ConfigurationInvalid for one that isn't there, and for root
 */
export async function ownFolder(given: string, use: FolderUse): Promise<string> {
  const folder = await realpath(given).catch((cause: unknown) => {
    throw new ConfigurationInvalid(given, ["can't be read: name a folder that is there"], { cause });
  });
  const stats = await stat(folder);
  if (!stats.isDirectory()) throw new ConfigurationInvalid(given, ["is no folder: name one"]);
  if (process.getuid?.() === 0)
    throw new ConfigurationInvalid(use.option, [rootRefused(folder, stats.uid, use)]);
  return folder;
}

/** Files that the agent makes there would be the session's user's, and the folder's own would have to be given to it. Pure. */
export function rootRefused(folder: string, owner: number, { command, instead }: FolderUse): string {
  const fixes =
    owner === 0
      ? [`give ${folder} to an ordinary user (chown -R) and run ${command} as that user`]
      : [`run it as the folder's owner: sudo -u '#${owner}' ${command}`];
  if (instead !== undefined) fixes.push(instead);
  return `can't be used by root: as root, each session has a user of its own, who may not write your files: ${fixes.join("; or ")}`;
}

/** The user's folders that are workspaces of sessions. */
export class UserFolders {
  /** The key is a session. */
  readonly #folders = new Map<string, string>();
  /** The key is a folder. The promise settles when its last run has ended. */
  readonly #runs = new Map<string, Promise<void>>();

  /** @param command what the folder's owner would run */
  constructor(readonly command: string) {}

  /** The workspace of a run, where its session has one of these folders. */
  folderOf({ sessionId }: Pick<RunRequest, "sessionId">): string | undefined {
    return sessionId === undefined ? undefined : this.#folders.get(sessionId);
  }

  /** @throws ConfigurationInvalid for a folder that can't be a workspace itself */
  async open(path: string): Promise<UserFolder> {
    const folder = await ownFolder(path, { option: path, command: this.command });
    return {
      path: folder,
      giveTo: (sessionId) => this.#folders.set(sessionId, folder),
      beginRun: (signal) => this.#begin(folder, signal),
    };
  }

  /** One run at a time: what two of them change couldn't be told apart. */
  async #begin(folder: string, signal: AbortSignal): Promise<UserFolderRun> {
    const before = this.#runs.get(folder) ?? Promise.resolve();
    const ended = Promise.withResolvers<void>();
    this.#runs.set(
      folder,
      before.then(() => ended.promise),
    );
    try {
      await unlessAborted(signal, () => before);
      const inPlace = new InPlace(folder);
      const guarded = await inPlace.prepare();
      await inPlace.begin();
      return {
        ...guarded,
        end: async () => {
          try {
            return (await inPlace.ended()) ?? { disarmed: [], undo: undefined };
          } finally {
            ended.resolve();
          }
        },
      };
    } catch (error) {
      ended.resolve();
      throw error;
    }
  }
}
