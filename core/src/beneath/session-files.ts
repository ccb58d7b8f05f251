import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { SandboxFailed } from "../errors.js";
import {
  codeOf,
  concernsOf,
  inFolder,
  namesBelow,
  type Ownership,
  openBeneath,
  type Place,
  refusal,
} from "./open-beneath.js";

/** Bytes. A file that an agent made without end mustn't fill the reader's memory. */
export const largestRead = 64 * 1024 * 1024;

export interface SessionFile {
  readonly path: string;
  readonly content: string | Uint8Array;
  readonly executable?: boolean;
}

/** A session's files, as whoever keeps its sandbox reads and writes them. Paths are absolute, and as processes see them. */
export interface KeptFiles {
  write(files: readonly SessionFile[]): Promise<void>;
  read(path: string): Promise<Uint8Array>;
}

/** A session's files, read and written by someone with more rights than the session has: nothing in the way may be a link. */
export class SessionFiles implements KeptFiles {
  readonly #places: readonly Place[];
  readonly #owner: Ownership | undefined;

  constructor(places: readonly Place[], owner?: Ownership) {
    this.#places = places;
    this.#owner = owner;
  }

  /** @throws SandboxFailed */
  async write(files: readonly SessionFile[]): Promise<void> {
    for (const file of files) await this.#write(file);
  }

  async #write({ path, content, executable = false }: SessionFile): Promise<void> {
    const { root, folders, name } = this.#locate(path);
    const folder = await openBeneath(root, folders, { owner: this.#owner });
    // A new file takes the place of whatever stands there: written through, a hard link would lead outside.
    const draft = inFolder(folder, `.ambit-${randomBytes(8).toString("hex")}`);
    try {
      const handle = await open(draft, "wx", executable ? 0o755 : 0o644);
      try {
        await handle.writeFile(content);
        if (this.#owner !== undefined) await handle.chown(this.#owner.uid, this.#owner.gid);
      } finally {
        await handle.close();
      }
      await rename(draft, inFolder(folder, name));
    } catch (error) {
      await rm(draft, { force: true });
      const why = codeOf(error) ?? (error instanceof Error ? error.name : "unknown");
      throw new SandboxFailed(`${path} can't be written: ${why}`, {
        cause: error,
        concerns: concernsOf(error),
      });
    } finally {
      await folder.handle.close();
    }
  }

  /** @throws SandboxFailed */
  async read(path: string): Promise<Uint8Array> {
    const { root, folders, name } = this.#locate(path);
    const folder = await openBeneath(root, folders);
    try {
      // Not blocking: opening a pipe that nobody writes to would wait for ever.
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
      const handle = await open(inFolder(folder, name), flags).catch((error: unknown) => {
        throw refusal(path, error);
      });
      try {
        const found = await handle.stat();
        if (!found.isFile()) throw ofSession(`${path} isn't a regular file`);
        if (found.size > largestRead) throw ofSession(`${path} is larger than ${largestRead} bytes`);
        return new Uint8Array(await handle.readFile());
      } finally {
        await handle.close();
      }
    } finally {
      await folder.handle.close();
    }
  }

  #locate(path: string): { root: Place; folders: readonly string[]; name: string } {
    for (const root of this.#places) {
      const names = namesBelow(root.inside, path);
      const name = names?.at(-1);
      if (names !== undefined && name !== undefined) return { root, folders: names.slice(0, -1), name };
    }
    const where = this.#places.map(({ inside }) => inside).join(" or ");
    throw ofSession(`${JSON.stringify(path)} doesn't lie in ${where}`);
  }
}

function ofSession(message: string): SandboxFailed {
  return new SandboxFailed(message, { concerns: "session" });
}
