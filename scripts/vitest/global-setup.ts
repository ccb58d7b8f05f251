import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const name = "@ambit/docker-engine";
const setup = fileURLToPath(new URL("../../test/docker-engine/dist/global-setup.js", import.meta.url));

/** Services that are started before a package's tests: a Docker engine, if its manifest names the tests' engine. */
export function globalSetupOf(folder: string): string[] {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return manifest.name === name || manifest.devDependencies?.[name] !== undefined ? [setup] : [];
}
