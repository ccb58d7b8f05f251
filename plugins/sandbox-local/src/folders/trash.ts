import { randomBytes } from "node:crypto";
import { readdir, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "@ambit/core/plugin";
import { messageOf } from "@ambit/core/plugin";
import { makePassage } from "./data-folder.js";
import { unmountBelow } from "./disk.js";
import { beginRemoval } from "./remove-tree.js";

/** Milliseconds that a caller waits for its turn, or for what this process removes itself. */
const patienceMs = 1_000;
/** Most simultaneous removals of all sessions. */
const together = 2;
/** Most problems that are kept until they are logged. */
const maxProblems = 100;

interface Problem {
  readonly path: string;
  readonly reason: string;
}

/**
 * Where folders of ended sessions are moved at once, and then removed. What can't be removed stays here, in quarantine:
 * no session sees it, it fails no start, and the next start tries again. Only the runner's user may enter.
 */
export class Trash {
  readonly #path: string;
  readonly #waiting: (() => void)[] = [];
  readonly #problems: Problem[] = [];
  /** Removals that would end with this process. */
  readonly #begun = new Set<Promise<void>>();
  #running = 0;

  private constructor(path: string) {
    this.#path = path;
  }

  /** @throws SandboxFailed when the folder can't be made. */
  static async open(dataFolder: string): Promise<Trash> {
    const path = join(dataFolder, "trash");
    await makePassage(path, 0o700);
    return new Trash(path);
  }

  /**
   * Moves a folder here, where no session sees it, and begins to remove it. Never rejects. The removal goes on after it has
   * resolved, since an agent chose how much it is; while `together` removals run, the next caller waits for one to end.
   *
   * @param waits whether to wait a moment for that. Default true.
   */
  async discard(folder: string, waits = true): Promise<void> {
    await this.#unmount(folder);
    const turn = this.#remove(await this.#take(folder));
    if (waits) await unlessLate(turn);
  }

  /** Resolves when no removal would end with this process, or a moment has passed. */
  async close(): Promise<void> {
    await unlessLate(Promise.all(this.#begun));
  }

  /** Tries again to remove what is left here. Never rejects, and doesn't wait. */
  async retry(): Promise<void> {
    try {
      await this.#unmount(this.#path);
      for (const name of await readdir(this.#path)) void this.#remove(join(this.#path, name));
    } catch (error) {
      this.#note({ path: this.#path, reason: String(error) });
    }
  }

  /** Reports something else that is left behind. */
  note(path: string, error: unknown): void {
    this.#note({ path, reason: messageOf(error) });
  }

  /** Logs what couldn't be removed since the last call. */
  report(log: Log): void {
    for (const problem of this.#problems.splice(0)) {
      log.warn(
        { ...problem },
        "files of an ended session can't be removed: no other session can access them",
      );
    }
  }

  /** The folder's new path. A missing folder is fine, and one that can't be moved is removed where it is. */
  async #take(folder: string): Promise<string> {
    const place = join(this.#path, `${basename(folder)}-${randomBytes(6).toString("hex")}`);
    try {
      await rename(folder, place);
      return place;
    } catch {
      return folder;
    }
  }

  /** A mount is no part of the host's disk, and can't be removed with the folder. */
  async #unmount(folder: string): Promise<void> {
    await unmountBelow(folder).catch((error: unknown) => this.note(folder, error));
  }

  /** Resolves when it is the removal's turn. */
  async #remove(path: string): Promise<void> {
    if (this.#running >= together) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running += 1;
    const removal = beginRemoval(path);
    const begun = removal.then(() => void this.#begun.delete(begun));
    this.#begun.add(begun);
    void removal.then(async ({ ended }) => {
      const reason = await ended;
      if (reason !== undefined) this.#note({ path, reason });
      this.#running -= 1;
      this.#waiting.shift()?.();
    });
  }

  #note(problem: Problem): void {
    if (this.#problems.length < maxProblems) this.#problems.push(problem);
  }
}

async function unlessLate(step: Promise<unknown>): Promise<void> {
  const waited = new AbortController();
  // Keeps the process alive until then; a removal that waits for others doesn't.
  const late = delay(patienceMs, undefined, { signal: waited.signal });
  await Promise.race([step, late.catch(() => undefined)]);
  waited.abort();
}
