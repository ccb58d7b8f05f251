import { chown, mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type FileOwner, namesBelow, type PathMapping, type SessionFiles } from "@ambit/backend-kit/safe-fs";
import { type FileEntry, SandboxFailed } from "@ambit/core/plugin";

/** A session's files, read and written through any links, as long as they lead to decoys. */
export class LinkedFiles implements SessionFiles {
  readonly #mappings: readonly PathMapping[];
  readonly #owner: FileOwner | undefined;
  readonly #decoys: readonly string[];

  constructor(mappings: readonly PathMapping[], owner: FileOwner | undefined, decoys: readonly string[]) {
    this.#mappings = mappings;
    this.#owner = owner;
    this.#decoys = decoys;
  }

  async write(files: readonly FileEntry[]): Promise<void> {
    for (const { path, content } of files) {
      const outside = this.#locate(path);
      await mkdir(dirname(outside), { recursive: true });
      const real = await this.#follow(outside);
      await writeFile(real, content);
      if (this.#owner !== undefined && !this.#isDecoy(real)) {
        await chown(real, this.#owner.uid, this.#owner.gid);
      }
    }
  }

  async read(path: string): Promise<Uint8Array> {
    return new Uint8Array(await readFile(await this.#follow(this.#locate(path))));
  }

  async list(): Promise<readonly string[]> {
    return [];
  }

  #locate(path: string): string {
    for (const { guest, host } of this.#mappings) {
      const names = namesBelow(guest, path);
      if (names !== undefined) return join(host, ...names);
    }
    throw new SandboxFailed(`${JSON.stringify(path)} isn't in the session`);
  }

  /** The path it leads to: the file, or its folder if the file doesn't exist yet. */
  async #follow(outside: string): Promise<string> {
    const real = await realpath(outside).catch(async () => {
      return join(await realpath(dirname(outside)), outside.slice(dirname(outside).length + 1));
    });
    const roots = await Promise.all(this.#mappings.map(({ host }) => realpath(host)));
    if (this.#isDecoy(real) || roots.some((root) => real.startsWith(`${root}/`))) return real;
    throw new SandboxFailed("A control follows links to decoys only");
  }

  #isDecoy(real: string): boolean {
    return this.#decoys.some((folder) => real.startsWith(`${folder}/`));
  }
}
