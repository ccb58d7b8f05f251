import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { lstat, readdir, readFile, realpath } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** More than a package's code has. Beyond it, nothing is said about the contents. */
const maxFiles = 5_000;
const maxBytes = 64 * 1024 * 1024;
const maxPackages = 1_000;

/** Counts what was read. */
class ContentsBudget {
  #files = 0;
  #bytes = 0;

  /** @throws RangeError */
  spend(bytes: number): void {
    this.#files += 1;
    this.#bytes += bytes;
    if (this.#files > maxFiles || this.#bytes > maxBytes) throw new RangeError("too many files to compare");
  }
}

/**
 * A digest of plugins' files: those of each package, or below the folder of a file that belongs to no installed package, and the
 * manifests of the packages that they depend on.
 *
 * @param paths of their main files.
 * @throws Error if they can't be read, or are too large to be read at each start.
 */
export async function digestOfPlugins(paths: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  const budget = new ContentsBudget();
  const seen = new Set<string>();
  for (const path of paths) {
    const real = await realpath(path);
    const root = packageOf(real);
    // The deployer's own file, next to a configuration whose folder may hold anything.
    const folder = root !== undefined && isMain(root, real) ? root : dirname(real);
    if (!seen.has(folder)) await addFolder(folder, hash, budget);
    seen.add(folder);
    if (root !== undefined) await addDependencies(root, hash, seen, budget);
  }
  return hash.digest("hex");
}

type Hash = ReturnType<typeof createHash>;

function packageOf(path: string): string | undefined {
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder))
    if (existsSync(join(folder, "package.json"))) return folder;
  return undefined;
}

/** Whether a package is installed, or at least is imported by its name: its main file is this one. */
function isMain(root: string, path: string): boolean {
  if (root.includes("/node_modules/")) return true;
  try {
    return createRequire(join(root, "package.json")).resolve(root) === path;
  } catch {
    return false;
  }
}

/** Everything but dependencies, hidden files and what a compiler leaves for other tools. */
const isCode = (name: string) =>
  name !== "node_modules" && !name.startsWith(".") && !/\.(d\.[cm]?ts|map|md|tsbuildinfo)$/.test(name);

async function addFolder(folder: string, hash: Hash, budget: ContentsBudget): Promise<void> {
  for (const name of (await readdir(folder)).filter(isCode).sort()) {
    const path = join(folder, name);
    const found = await lstat(path);
    if (found.isDirectory()) await addFolder(path, hash, budget);
    if (!found.isFile()) continue;
    budget.spend(found.size);
    hash.update(`${path}\0${found.size}\0`).update(await readFile(path));
  }
}

/** A linked package is being developed: its version stays the same when it changes. */
async function addDependencies(
  root: string,
  hash: Hash,
  seen: Set<string>,
  budget: ContentsBudget,
): Promise<void> {
  const manifest = await readFile(join(root, "package.json"), "utf8");
  const { dependencies = {} }: { dependencies?: Record<string, string> } = JSON.parse(manifest);
  for (const name of Object.keys(dependencies).sort()) {
    const found = installed(root, name);
    if (found === undefined) continue;
    const folder = await realpath(found);
    if (seen.has(folder)) continue;
    seen.add(folder);
    if (seen.size > maxPackages) throw new RangeError("too many packages to compare");
    const own = await readFile(join(folder, "package.json"));
    budget.spend(own.length);
    hash.update(`${folder}\0`).update(own);
    if (!folder.includes("/node_modules/")) await addFolder(folder, hash, budget);
    await addDependencies(folder, hash, seen, budget);
  }
}

function installed(root: string, name: string): string | undefined {
  for (let folder = root; ; folder = dirname(folder)) {
    const path = join(folder, "node_modules", name);
    if (existsSync(path)) return path;
    if (folder === dirname(folder)) return undefined;
  }
}
