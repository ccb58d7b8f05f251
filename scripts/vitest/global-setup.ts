import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Tier } from "./tiers.ts";

const engineName = "@ambit/docker-engine";
const clusterName = "@ambit/test-cluster";
const sharedCache = fileURLToPath(new URL("shared-cache.ts", import.meta.url));
const engine = fileURLToPath(new URL("../../test/docker-engine/dist/global-setup.js", import.meta.url));
const cluster = fileURLToPath(new URL("../../test/cluster/dist/global-setup.js", import.meta.url));

/**
 * What is there before a package's tests: a cache folder, and a Docker engine or a cluster if its manifest names the tests'
 * own. No quick test needs either.
 */
export function globalSetupOf(folder: string, tier: Tier = "all"): string[] {
  if (tier === "quick") return [sharedCache];
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const needs = (name: string) => manifest.name === name || manifest.devDependencies?.[name] !== undefined;
  return [sharedCache, ...(needs(engineName) ? [engine] : []), ...(needs(clusterName) ? [cluster] : [])];
}
