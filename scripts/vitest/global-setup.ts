import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const name = "@ambit/docker-engine";
const sharedCache = fileURLToPath(new URL("shared-cache.ts", import.meta.url));
const engine = fileURLToPath(new URL("../../test/docker-engine/dist/global-setup.js", import.meta.url));

/**
 * What is there before a package's tests: a cache folder, and a Docker engine if its manifest names the tests' engine.
 */
export function globalSetupOf(folder: string): string[] {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const needsEngine = manifest.name === name || manifest.devDependencies?.[name] !== undefined;
  return needsEngine ? [sharedCache, engine] : [sharedCache];
}
