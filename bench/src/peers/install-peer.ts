import { execFile } from "node:child_process";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";

const execute = promisify(execFile);
const cache = fileURLToPath(new URL("../../../.cache/bench-peers", import.meta.url));
const installTimeoutMs = 120_000;

/** A package to compare with, which isn't part of Ambit. */
export interface Peer {
  readonly name: string;
  /** Exact. */
  readonly version: string;
  readonly license: string;
  /** Its entry, as a path in the package. */
  readonly entry: string;
}

const manifestSchema = z.object({ name: z.string(), version: z.string(), license: z.string() });

/**
 * Installs a peer from npm into the cache, once, without running its scripts.
 *
 * @returns the file URL of its entry.
 * @throws Error when it isn't the expected version, or its license has changed.
 */
export async function installPeer({ name, version, license, entry }: Peer): Promise<string> {
  const folder = join(cache, `${name.replaceAll("/", "+")}-${version}`);
  const installed = join(folder, "node_modules", name);
  const found = await manifestOf(installed);
  if (found === undefined) {
    const making = `${folder}.${process.pid}`;
    await mkdir(making, { recursive: true });
    try {
      await writeFile(join(making, "package.json"), '{ "private": true }\n');
      const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"];
      const argv = ["install", ...options, "--save-exact", `${name}@${version}`];
      await execute("npm", argv, { cwd: making, timeout: installTimeoutMs });
      await rename(making, folder);
    } finally {
      await rm(making, { recursive: true, force: true });
    }
  }
  const manifest = found ?? (await manifestOf(installed));
  if (manifest?.version !== version || manifest.license !== license)
    throw new Error(
      `${name} isn't version ${version} with the license ${license}: remove ${dirname(folder)}, or change its entry`,
    );
  return new URL(entry, `file://${installed}/`).href;
}

async function manifestOf(folder: string) {
  const text = await readFile(join(folder, "package.json"), "utf8").catch(() => undefined);
  return text === undefined ? undefined : manifestSchema.parse(JSON.parse(text));
}
