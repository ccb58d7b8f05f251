import type { UserFolderEnd } from "@ambit/core/plugin";
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
