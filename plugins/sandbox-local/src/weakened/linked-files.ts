import { chown, mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type FileEntry,
  type KeptFiles,
  namesBelow,
  type Ownership,
  type Place,
  SandboxFailed,
} from "@ambit/core/plugin";

/** A session's files, read and written through whatever links stand in the way, as long as they lead to decoys. */
export class LinkedFiles implements KeptFiles {
  readonly #places: readonly Place[];
  readonly #owner: Ownership | undefined;
  readonly #decoys: readonly string[];

  constructor(places: readonly Place[], owner: Ownership | undefined, decoys: readonly string[]) {
    this.#places = places;
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

  #locate(path: string): string {
    for (const { inside, outside } of this.#places) {
      const names = namesBelow(inside, path);
      if (names !== undefined) return join(outside, ...names);
    }
    throw new SandboxFailed(`${JSON.stringify(path)} doesn't lie in the session`);
  }

  /** Where it leads, the file itself or its folder where it isn't there yet. */
  async #follow(outside: string): Promise<string> {
    const real = await realpath(outside).catch(async () => {
      return join(await realpath(dirname(outside)), outside.slice(dirname(outside).length + 1));
    });
    const roots = await Promise.all(this.#places.map((place) => realpath(place.outside)));
    if (this.#isDecoy(real) || roots.some((root) => real.startsWith(`${root}/`))) return real;
    throw new SandboxFailed("A control follows links to decoys only");
  }

  #isDecoy(real: string): boolean {
    return this.#decoys.some((folder) => real.startsWith(`${folder}/`));
  }
}
