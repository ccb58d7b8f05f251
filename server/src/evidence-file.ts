import { createHash } from "node:crypto";
import { lstat, mkdir, readFile, readlink, rename, writeFile } from "node:fs/promises";
import { hostname, release } from "node:os";
import { join } from "node:path";
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
import { digestOfPlugins } from "./plugin-contents.js";
import { version } from "./version.js";

const namespaces = ["cgroup", "mnt", "net", "pid", "user"] as const;

/** For an actor to name what it depends on. An engine that doesn't answer must not hold up a start. */
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
    const found = paths.filter((path) => path !== undefined);
    if (found.length < paths.length) return undefined;
    const actors = registrations.map(({ actor }) => actor);
    const seen = await Promise.all([
      whereThisRuns(),
      // The plugins that come with Ambit are part of its own bundle.
      digestOfPlugins([...found, fileURLToPath(import.meta.url)]),
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
    const draft = `${this.path}.${process.pid}`;
    try {
      await mkdir(join(this.path, ".."), { recursive: true, mode: 0o700 });
      await writeFile(draft, JSON.stringify(evidence), { mode: 0o600 });
      await rename(draft, this.path);
    } catch {
      // A read-only home.
    }
  }
}
