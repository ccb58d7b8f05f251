import { existsSync } from "node:fs";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { repository } from "./ambit.js";

/** Installs packages of this repository, packed as for a registry, and links to other packages that are installed here. */
export async function installPacked(
  folder: string,
  packages: readonly string[],
  others: readonly string[] = [],
): Promise<void> {
  const modules = join(folder, "node_modules");
  /** The folder of a package, by name: npm may have installed another version of it at the top. */
  const installed = new Map(others.map((name) => [name, join(repository, "node_modules", name)]));
  const chosen = packages.map((path) => `--workspace=${path}`);
  const argv = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder, ...chosen];
  const { stdout } = await execa("npm", argv, { cwd: repository });
  // In the order of the requested workspaces.
  const packed: { name: string; filename: string }[] = JSON.parse(stdout);
  for (const [index, path] of packages.entries()) {
    const { name = "", filename = "" } = packed[index] ?? {};
    const cwd = join(repository, path);
    await mkdir(join(modules, name), { recursive: true });
    const archive = join(folder, filename);
    await execa("tar", ["-xzf", archive, "-C", join(modules, name), "--strip-components=1"]);
    const manifest: { dependencies?: Record<string, string> } = JSON.parse(
      await readFile(join(modules, name, "package.json"), "utf8"),
    );
    for (const dependency of Object.keys(manifest.dependencies ?? {})) {
      const own = join(cwd, "node_modules", dependency);
      if (existsSync(own)) installed.set(dependency, own);
      else if (!installed.has(dependency))
        installed.set(dependency, join(repository, "node_modules", dependency));
    }
  }
  for (const [name, source] of installed) {
    const link = join(modules, name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(source, link).catch((error: NodeJS.ErrnoException) => {
      // It is one of the packed packages.
      if (error.code !== "EEXIST") throw error;
    });
  }
}
