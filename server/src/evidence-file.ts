import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { lstat, readdir, readFile, readlink, realpath } from "node:fs/promises";
import { createRequire } from "node:module";
import { hostname, release } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  actorDescriptionSchema,
  checkedReturn,
  HomeMissing,
  inOffer,
  isPlugin,
  PluginBrokeContract,
  pluginReturns,
  type Registry,
  userFolder,
} from "@ambit/core";
import type { Actor } from "@ambit/core/plugin";
import { z } from "zod";
import { pluginPath } from "./configuration/import-plugin.js";
import type { Settings } from "./configuration/load.js";
import { replaceFile } from "./replace-file.js";
import { version } from "./version.js";

const namespaces = ["cgroup", "mnt", "net", "pid", "user"] as const;

/** Milliseconds that an actor has to name what it depends on. An engine that doesn't answer must not hold up a start. */
const dependsOnMs = 5_000;

/**
 * Identifies what evidence depends on: this boot, and the process's namespaces, capabilities, seccomp filter and
 * cgroup.
 */
async function whereThisRuns(): Promise<readonly string[]> {
  const status = await readFile("/proc/self/status", "utf8");
  return Promise.all([
    readFile("/proc/sys/kernel/random/boot_id", "utf8"),
    readFile("/proc/self/cgroup", "utf8"),
    ...namespaces.map((name) => readlink(`/proc/self/ns/${name}`)),
    ...(status.match(/^(Cap\w+|NoNewPrivs|Seccomp\w*|Groups):.*$/gm) ?? []),
  ]);
}

/** @throws PluginBrokeContract; whatever the plugin threw */
async function dependenciesOf(actor: Actor<never>): Promise<readonly string[]> {
  if (actor.dependsOn === undefined) return [];
  const returned: unknown = await inOffer(actor, () => actor.dependsOn?.(AbortSignal.timeout(dependsOnMs)));
  return checkedReturn(actor, "dependsOn", pluginReturns.names, returned);
}

/**
 * Keeps the evidence of this host between processes, so that the next one needn't probe again. The evidence is used
 * only on the same boot of the same host, by the same user, with the same versions, configuration and files of plugins, with
 * the same programs that the plugins' actors depend on, and never past `probes.maxAgeMs`. If it refuses a boundary, the host
 * is probed again. A process that can write this user's cache folder can write Ambit itself.
 */
export class EvidenceFile {
  private constructor(readonly path: string) {}

  /**
   * Undefined if evidence can't be identified, for example if a plugin is an object in the configuration.
   * @throws PluginBrokeContract
   */
  static async for(
    { plugins, file, probes: { keepAcrossRestarts: _, ...probes } }: Settings,
    { registrations }: Registry,
    pathOf: (name: string) => string | undefined = (name) => pluginPath(name, file),
  ): Promise<EvidenceFile | undefined> {
    const names = plugins.map((entry) => (isPlugin(entry) || typeof entry === "string" ? entry : entry.use));
    const paths = names.map((name) => (typeof name === "string" ? pathOf(name) : undefined));
    const foundPaths = paths.filter((path) => path !== undefined);
    if (foundPaths.length < paths.length) return undefined;
    const actors = registrations.map(({ actor }) => actor);
    const seen = await Promise.all([
      whereThisRuns(),
      // The plugins that come with Ambit are part of its own bundle.
      digestOfPlugins([...foundPaths, fileURLToPath(import.meta.url)]),
      ...actors.map(dependenciesOf),
    ]).catch((error: unknown) => {
      if (error instanceof PluginBrokeContract) throw error;
      return undefined;
    });
    if (seen === undefined) return undefined;
    const [place, code, ...dependencies] = seen;
    const host = [hostname(), release(), process.getuid?.(), process.env.PATH, place];
    const versions = [version(), process.version, process.execPath];
    const key = createHash("sha256")
      .update(JSON.stringify([host, versions, plugins, probes, code, dependencies]))
      .digest("hex");
    try {
      return new EvidenceFile(
        join(userFolder("XDG_CACHE_HOME", ".cache"), "ambit", "evidence", `${key}.json`),
      );
    } catch (error) {
      if (error instanceof HomeMissing) return undefined;
      throw error;
    }
  }

  /** Restores the stored evidence. A file that can't be used is ignored. */
  async restore(registry: Registry): Promise<void> {
    try {
      const { uid, mode } = await lstat(this.path);
      if (uid !== process.getuid?.() || (mode & 0o022) !== 0) return;
      registry.restore(z.array(actorDescriptionSchema).parse(JSON.parse(await readFile(this.path, "utf8"))));
    } catch {
      // No file yet, or one of another version: the registry probes.
    }
  }

  /** Stores the registry's evidence. If that fails, the next process probes again. */
  async keep(registry: Registry): Promise<void> {
    const evidence = registry.evidence();
    if (evidence.length === 0) return;
    await replaceFile(this.path, JSON.stringify(evidence)).catch(() => {
      // A read-only home.
    });
  }
}

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
async function digestOfPlugins(paths: readonly string[]): Promise<string> {
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
    const stats = await lstat(path);
    if (stats.isDirectory()) await addFolder(path, hash, budget);
    if (!stats.isFile()) continue;
    budget.spend(stats.size);
    hash.update(`${path}\0${stats.size}\0`).update(await readFile(path));
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
    const installedPath = installed(root, name);
    if (installedPath === undefined) continue;
    const folder = await realpath(installedPath);
    if (seen.has(folder)) continue;
    seen.add(folder);
    if (seen.size > maxPackages) throw new RangeError("too many packages to compare");
    const dependencyManifest = await readFile(join(folder, "package.json"));
    budget.spend(dependencyManifest.length);
    hash.update(`${folder}\0`).update(dependencyManifest);
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
