import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  symlink,
  unlink,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf, stateFolder } from "@ambit/core/plugin";
import { isGitFolder } from "@ambit/workspace";
import { z } from "zod";
import { ConfigurationInvalid } from "../../../configuration/problems.js";
import { replaceFile } from "../../../replace-file.js";
import { digestOf, isSame, readTree, type Tree, type TreeEntry, treeSchema } from "./tree.js";

/** Folders whose snapshots are kept: the latest. */
const maxFolders = 10;

const snapshotSchema = z.strictObject({
  folder: z.string(),
  /** Milliseconds since 1970. */
  takenAt: z.int(),
  before: treeSchema,
  /** Absent: the run didn't get to its end. */
  after: treeSchema.optional(),
  isUndone: z.boolean(),
});
type Snapshot = z.infer<typeof snapshotSchema>;

/** What a name is changed to so that git doesn't take its folder for a repository. */
const disarmedEnd = ".ambit-disarmed";

/** What became of what a run changed. */
export interface Undone {
  readonly restored: number;
  /** Paths that were changed since the run, and stay as they are. */
  readonly left: readonly string[];
}

/** A folder as it was before the last run that worked in it. Only this user can read it. */
export class FolderSnapshot {
  #earlier: Snapshot | undefined;
  #before: Tree | undefined;
  #hasBegun = false;

  private constructor(
    readonly folder: string,
    readonly place: string,
  ) {}

  /** @param folder without links. @param parent default: the data folder. */
  static of(folder: string, parent = stateFolder()): FolderSnapshot {
    const name = createHash("sha256").update(folder).digest("hex");
    return new FolderSnapshot(folder, join(parent, "in-place", name));
  }

  /** Keeps the folder's contents, before a run. @throws ConfigurationInvalid for a folder that is too large */
  async prepare(): Promise<Tree> {
    this.#earlier = await this.#read();
    await mkdir(join(this.place, "contents"), { recursive: true, mode: 0o700 });
    const keptContents = new Set(await readdir(join(this.place, "contents")));
    const isWhole = (entry: TreeEntry) => entry.kind !== "file" || keptContents.has(entry.sha256);
    const wholeSnapshot = this.#earlier && {
      ...this.#earlier.before,
      entries: this.#earlier.before.entries.filter(isWhole),
    };
    const read = (path: string) => this.#keep(path);
    this.#before = await readTree(this.folder, { earlier: wholeSnapshot, read });
    return this.#before;
  }

  /** When the run begins: from now on, this is what `restore` goes back to. */
  async begin(): Promise<void> {
    if (this.#before === undefined) return;
    const { folder } = this;
    await this.#write({ folder, takenAt: Date.now(), before: this.#before, isUndone: false });
    this.#hasBegun = true;
  }

  /**
   * After a run that has begun. Git runs on the host what a repository configures: those that the run made are disarmed, and
   * so is what it made at paths that the user's git runs.
   * Where nothing changed, `restore` goes back to what it went back to before.
   *
   * @param missing such paths, which weren't there before
   * @returns whether anything changed, and the paths of what was renamed
   */
  async ended(
    missing: readonly string[] = [],
  ): Promise<{ readonly isChanged: boolean; readonly disarmed: readonly string[] } | undefined> {
    const before = this.#before;
    if (before === undefined || !this.#hasBegun) return undefined;
    this.#hasBegun = false;
    // An empty one kept the run from making a repository.
    if (!before.repositories.includes(".git")) await rmdir(join(this.folder, ".git")).catch(() => undefined);
    const disarmed: string[] = [];
    for (const path of missing) {
      const stats = await lstat(join(this.folder, path)).catch(() => undefined);
      if (stats !== undefined) disarmed.push(await renameDisarmed(this.folder, path));
    }
    let after = await readTree(this.folder, { earlier: before, read: digestIfReadable });
    // What is renamed may still be one.
    for (;;) {
      const newRepositories = after.repositories.filter((path) => !before.repositories.includes(path));
      if (newRepositories.length === 0) break;
      for (const path of newRepositories) {
        const renamed = await disarm(this.folder, path);
        if (!path.includes(disarmedEnd)) disarmed.push(renamed);
      }
      after = await readTree(this.folder, { earlier: after, read: digestIfReadable });
    }
    const isChanged = changedIn(before, after).length > 0;
    const { folder } = this;
    const taken = { folder, takenAt: Date.now(), before, after, isUndone: false };
    const snapshot = isChanged ? taken : (this.#earlier ?? taken);
    await this.#write(snapshot);
    await this.#forget(snapshot.before);
    return { isChanged, disarmed };
  }

  /**
   * Brings the folder back to what it was. What was changed since the run stays, and is named.
   * @throws ConfigurationInvalid where there is nothing to go back to
   */
  async restore(): Promise<Undone> {
    const snapshot = await this.#read();
    if (snapshot === undefined || snapshot.isUndone) {
      const why = snapshot === undefined ? "no run worked in it" : "its last run is undone already";
      throw new ConfigurationInvalid(this.folder, [`has nothing to go back to: ${why}`]);
    }
    const { before, after } = snapshot;
    const now = await readTree(this.folder, { earlier: after ?? before, read: digestIfReadable });
    const [was, ended, is] = [byPath(before), after && byPath(after), byPath(now)];
    const changed = changedIn(before, now);
    // Without the run's end, nothing tells a new file of the user's from one of the agent's.
    const isOfRun = (path: string) =>
      ended === undefined ? was.has(path) : isSame(ended.get(path), is.get(path));
    const left = changed.filter((path) => !isOfRun(path));
    const chosen = changed.filter(isOfRun);
    // What is in the way goes first, from the deepest one on.
    for (const path of [...chosen].reverse()) {
      const [old, present] = [was.get(path), is.get(path)];
      if (present !== undefined && old?.kind !== present.kind && !(await this.#remove(present)))
        left.push(path);
    }
    for (const path of chosen) {
      const entry = was.get(path);
      if (entry !== undefined) await this.#restore(entry);
    }
    await this.#write({ ...snapshot, isUndone: left.length === 0 });
    return { restored: chosen.filter((path) => !left.includes(path)).length, left: left.sort() };
  }

  /** @returns false for a folder that has something that stays */
  async #remove({ kind, path }: TreeEntry): Promise<boolean> {
    const place = join(this.folder, path);
    try {
      await (kind === "folder" ? rmdir(place) : unlink(place));
    } catch (error) {
      if (codeOf(error) === "ENOTEMPTY") return false;
      if (codeOf(error) !== "ENOENT") throw error;
    }
    return true;
  }

  async #restore(entry: TreeEntry): Promise<void> {
    const place = join(this.folder, entry.path);
    if (entry.kind === "folder") {
      await mkdir(place).catch((error: unknown) => {
        if (codeOf(error) !== "EEXIST") throw error;
      });
      return await chmod(place, entry.mode);
    }
    const draft = join(dirname(place), `.ambit-${randomBytes(8).toString("hex")}`);
    if (entry.kind === "link") await symlink(entry.target, draft);
    else {
      await copyFile(join(this.place, "contents", entry.sha256), draft, constants.COPYFILE_FICLONE);
      await chmod(draft, entry.mode);
    }
    await rename(draft, place);
  }

  /** @returns the digest */
  async #keep(path: string): Promise<string> {
    const draft = join(this.place, `draft-${randomBytes(8).toString("hex")}`);
    // A copy-on-write file system copies nothing.
    await copyFile(path, draft, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    await chmod(draft, 0o600);
    const sha256 = await digestOf(draft);
    await rename(draft, join(this.place, "contents", sha256));
    return sha256;
  }

  get #file(): string {
    return join(this.place, "snapshot.json");
  }

  async #read(): Promise<Snapshot | undefined> {
    try {
      return snapshotSchema.parse(JSON.parse(await readFile(this.#file, "utf8")));
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw new ConfigurationInvalid(this.folder, [
        `has a snapshot that can't be read (${this.#file}): remove that file`,
      ]);
    }
  }

  #write(snapshot: Snapshot): Promise<void> {
    return replaceFile(this.#file, JSON.stringify(snapshot));
  }

  /** Contents that nothing needs any more, and the snapshots of other folders beyond the latest. */
  async #forget(before: Tree): Promise<void> {
    const wanted = new Set(before.entries.flatMap((entry) => (entry.kind === "file" ? [entry.sha256] : [])));
    const contents = join(this.place, "contents");
    for (const name of await readdir(contents))
      if (!wanted.has(name)) await rm(join(contents, name), { force: true });
    const all = dirname(this.place);
    const ages = await Promise.all(
      (await readdir(all)).map(async (name) => {
        const stats = await lstat(join(all, name, "snapshot.json")).catch(() => undefined);
        return { name, at: stats?.mtimeMs ?? 0 };
      }),
    );
    for (const { name } of ages.sort((one, other) => other.at - one.at).slice(maxFolders))
      await rm(join(all, name), { recursive: true, force: true });
  }
}

/** Renames what makes it a repository: `.git`, or `HEAD` in a folder that is one. @returns the new path */
async function disarm(folder: string, path: string): Promise<string> {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return await renameDisarmed(folder, isGitFolder(name) ? path : `${path}/HEAD`);
}

async function renameDisarmed(folder: string, path: string): Promise<string> {
  const renamed = `${path}${disarmedEnd}-${randomBytes(3).toString("hex")}`;
  await rename(join(folder, path), join(folder, renamed));
  return renamed;
}

/** The agent may have taken the user's own right to read it. */
const digestIfReadable = (path: string) =>
  digestOf(path).catch((error: unknown) => {
    if (codeOf(error) !== "EACCES") throw error;
    return "unreadable";
  });

const byPath = ({ entries }: Tree) => new Map(entries.map((entry) => [entry.path, entry]));

/** Paths that differ, sorted: folders come before what is in them. Pure. */
function changedIn(before: Tree, after: Tree): readonly string[] {
  const [was, is] = [byPath(before), byPath(after)];
  const paths = new Set([...was.keys(), ...is.keys()]);
  return [...paths].filter((path) => !isSame(was.get(path), is.get(path))).sort();
}
