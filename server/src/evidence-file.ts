import { createHash } from "node:crypto";
import { lstat, mkdir, readFile, readlink, rename, writeFile } from "node:fs/promises";
import { homedir, hostname, release } from "node:os";
import { join } from "node:path";
import { actorDescriptionSchema, BoundaryRefused, isPlugin, type Registry } from "@ambit/core";
import { z } from "zod";
import type { Settings } from "./configuration/load.js";
import { version } from "./version.js";

const namespaces = ["cgroup", "mnt", "net", "pid", "user"] as const;

/** What a process may do here depends on: this boot, its namespaces, capabilities, seccomp filter and cgroup. */
async function whereThisRuns(): Promise<readonly string[]> {
  const status = await readFile("/proc/self/status", "utf8");
  return Promise.all([
    readFile("/proc/sys/kernel/random/boot_id", "utf8"),
    readFile("/proc/self/cgroup", "utf8"),
    ...namespaces.map((name) => readlink(`/proc/self/ns/${name}`)),
    ...(status.match(/^(Cap\w+|NoNewPrivs|Seccomp\w*|Groups):.*$/gm) ?? []),
  ]);
}

/**
 * Keeps what was proven on this host between two commands, so that the second needn't probe again. The evidence is used
 * only on the same boot of the same host, by the same user, with the same versions, plugins and configuration, and
 * never past `probes.maxAgeMs`, as in a server. A process that can write this user's cache folder can write Ambit
 * itself.
 */
export class EvidenceFile {
  private constructor(readonly path: string) {}

  /** Undefined where evidence can't be identified: a plugin that is an object in the configuration has no name. */
  static async for({ plugins, probes }: Settings): Promise<EvidenceFile | undefined> {
    const entries = plugins.map((entry) =>
      isPlugin(entry) || typeof entry === "string" ? entry : entry.use,
    );
    if (entries.some((entry) => typeof entry !== "string")) return undefined;
    const place = await whereThisRuns().catch(() => undefined);
    if (place === undefined) return undefined;
    const host = [hostname(), release(), process.getuid?.(), process.env.PATH, place];
    const versions = [version(), process.version, process.execPath];
    const key = createHash("sha256")
      .update(JSON.stringify([host, versions, plugins, probes]))
      .digest("hex");
    const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
    return new EvidenceFile(join(cache, "ambit", "evidence", `${key}.json`));
  }

  /**
   * Plans with the evidence that is kept. When that refuses a boundary, the host is probed anew and the plan made
   * again: what was missing may have been installed meanwhile.
   */
  async plan<Planned>(registry: Registry, makePlan: () => Promise<Planned>): Promise<Planned> {
    const wasProbed = registry.isProbed;
    try {
      return await makePlan();
    } catch (error) {
      if (!wasProbed || !(error instanceof BoundaryRefused)) throw error;
      registry.invalidateAll();
      return await makePlan();
    }
  }

  /** Gives the registry what is kept. A file that can't be used is as good as none. */
  async restore(registry: Registry): Promise<void> {
    try {
      const { uid, mode } = await lstat(this.path);
      if (uid !== process.getuid?.() || (mode & 0o022) !== 0) return;
      registry.restore(z.array(actorDescriptionSchema).parse(JSON.parse(await readFile(this.path, "utf8"))));
    } catch {
      // None yet, or of another version: the registry probes.
    }
  }

  /** Keeps what the registry knows now. Where it can't be written, the next command probes again. */
  async keep(registry: Registry): Promise<void> {
    const draft = `${this.path}.${process.pid}`;
    try {
      await mkdir(join(this.path, ".."), { recursive: true, mode: 0o700 });
      await writeFile(draft, JSON.stringify(registry.evidence()), { mode: 0o600 });
      await rename(draft, this.path);
    } catch {
      // A read-only home.
    }
  }
}
