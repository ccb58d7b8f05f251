import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { type LocalEntry, settingsOf } from "@ambit/workspace";
import { askGit, readGit } from "./git.js";
import { localEntry } from "./local-file.js";

/** Bytes of a repository's history. */
const maxPackBytes = 512 * 1024 * 1024;
/** Milliseconds for packing it. */
const packTimeoutMs = 60_000;

/** What makes the copy of a folder a repository. */
export interface CopiedRepository {
  /** Of `.git`. */
  readonly entries: readonly LocalEntry[];
  readonly user: { readonly name: string; readonly email: string } | undefined;
  /** Removes what it keeps on disk. */
  close(): Promise<void>;
}

/**
 * The folder's repository with its branches, tags and index, without hooks, and with settings of Ambit's own: no credential of
 * a remote is in them, and nothing runs a program.
 * @returns why it isn't copied, where it can't be; undefined outside of a repository
 */
export async function copiedRepository(folder: string): Promise<CopiedRepository | string | undefined> {
  const prefix = await askGit(folder, "rev-parse", "--show-prefix");
  if (prefix === undefined) return undefined;
  if (prefix !== "") return "the repository begins above the folder";
  if ((await askGit(folder, "rev-parse", "--show-object-format")) !== "sha1")
    return "its objects aren't SHA-1";
  const temporary = await mkdtemp(join(tmpdir(), "ambit-repository-"));
  const close = () => rm(temporary, { recursive: true, force: true });
  try {
    const entries = await gitEntries(folder, temporary);
    if (typeof entries !== "string") return { entries, user: await userOf(folder), close };
    await close();
    return entries;
  } catch {
    await close();
    return "git can't pack it: `git fsck` may say why";
  }
}

async function gitEntries(folder: string, temporary: string): Promise<readonly LocalEntry[] | string> {
  const commit = await askGit(folder, "rev-parse", "--quiet", "--verify", "HEAD^{commit}");
  const branch = (await askGit(folder, "symbolic-ref", "--quiet", "--short", "HEAD")) ?? undefined;
  const format = "--format=%(objectname) %(refname)";
  const refs =
    (await askGit(folder, "for-each-ref", format, "refs/heads", "refs/tags", "refs/remotes")) ?? "";
  const wanted = [
    ...(commit === undefined ? [] : [commit]),
    ...refs.split("\n").map((line) => line.split(" ")[0]),
  ];
  const input = wanted
    .filter((id) => id !== "")
    .map((id) => `${id}\n`)
    .join("");
  const argv = ["pack-objects", "--quiet", "--revs", "--indexed-objects", "--delta-base-offset"];
  const packing = { input, timeoutMs: packTimeoutMs };
  const digests = await readGit(folder, [...argv, join(temporary, "pack")], packing).catch(
    (error: unknown) => {
      if (error instanceof Error && "timedOut" in error && error.timedOut === true) return undefined;
      throw error;
    },
  );
  if (digests === undefined) return `git needs more than ${packTimeoutMs / 1_000} s to pack it`;
  const packs: LocalEntry[] = [];
  for (const digest of digests.split("\n").filter((line) => line !== ""))
    for (const end of ["pack", "idx"]) {
      const name = `pack-${digest}.${end}`;
      if ((await stat(join(temporary, name))).size > maxPackBytes)
        return `its history is larger than ${maxPackBytes / 1_048_576} MiB`;
      const packed = await localEntry(temporary, name);
      if (packed?.kind === "file") packs.push({ ...packed, path: `.git/objects/pack/${name}`, mode: 0o444 });
    }
  const url = withoutCredential(await askGit(folder, "config", "--get", "remote.origin.url"));
  const settings = settingsOf({ url, branch, isSparse: false, hasLfs: false });
  return [
    { kind: "folder", path: ".git/refs/heads" },
    text(".git/HEAD", branch === undefined ? `${commit}\n` : `ref: refs/heads/${branch}\n`),
    text(".git/config", settings),
    ...(refs === "" ? [] : [text(".git/packed-refs", `${refs}\n`)]),
    ...packs,
    ...(await copies(folder, ["index", "shallow", "info/exclude"])),
  ];
}

/** Data of the repository's own that git reads and never runs. */
async function copies(folder: string, names: readonly string[]): Promise<readonly LocalEntry[]> {
  const copied = names.map(async (name) => {
    const path = await askGit(folder, "rev-parse", "--git-path", name);
    if (path === undefined) return undefined;
    const whole = isAbsolute(path) ? path : join(folder, path);
    const entry = await localEntry(join(whole, ".."), whole.slice(whole.lastIndexOf("/") + 1));
    return entry?.kind === "file" ? { ...entry, path: `.git/${name}` } : undefined;
  });
  return (await Promise.all(copied)).filter((entry) => entry !== undefined);
}

function text(path: string, content: string | Buffer): LocalEntry {
  const bytes = Buffer.from(content);
  const stream = async function* () {
    yield bytes;
  };
  return { kind: "file", path, mode: 0o644, mtime: Date.now(), content: async () => stream() };
}

/** Undefined for one that could have a credential: a path of this host, or what is no URL. */
function withoutCredential(url: string | undefined): string | undefined {
  if (url === undefined || /^[\w.-]+@[\w.-]+:[^\s"\\]+$/.test(url)) return url;
  if (!URL.canParse(url) || !/^(https?|ssh|git):$/.test(new URL(url).protocol)) return undefined;
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

async function userOf(folder: string): Promise<CopiedRepository["user"]> {
  const name = await askGit(folder, "config", "--get", "user.name");
  const email = await askGit(folder, "config", "--get", "user.email");
  // A commit can't have another one.
  const isName = (one: string | undefined) => one !== undefined && /^[^<>\p{Cc}]{1,256}$/u.test(one);
  return name === undefined || email === undefined || !isName(name) || !isName(email)
    ? undefined
    : { name, email };
}
