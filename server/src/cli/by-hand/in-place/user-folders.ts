import type { RunRequest } from "@ambit/core/contract";
import { type UserFolder, type UserFolderRun, unlessAborted } from "@ambit/core/plugin";
import { InPlace } from "./in-place.js";
import { ownFolder } from "./own-folder.js";

/** The user's folders that are workspaces of sessions. */
export class UserFolders {
  /** By session. */
  readonly #folders = new Map<string, string>();
  /** By folder: settles when its last run has ended. */
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
