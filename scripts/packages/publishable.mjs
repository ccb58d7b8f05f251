import { execFileSync } from "node:child_process";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { root } from "../setup.mjs";

/**
 * A package that is published.
 * @typedef {{ name: string, version: string, folder: string, dependencies: Record<string, string> }} Publishable
 */

/** All of them, each after those that it depends on. @returns {readonly Publishable[]} */
export function publishable() {
  const { workspaces } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const manifests = globSync(
    workspaces.map((/** @type {string} */ folder) => `${folder}/package.json`),
    { cwd: root },
  );
  /** @type {Map<string, Publishable>} */
  const found = new Map();
  for (const path of manifests) {
    const manifest = JSON.parse(readFileSync(join(root, path), "utf8"));
    if (manifest.private === true) continue;
    const { name, version, dependencies = {} } = manifest;
    found.set(name, { name, version, folder: join(root, dirname(path)), dependencies });
  }
  /** @type {Set<Publishable>} */
  const ordered = new Set();
  /** @param {Publishable} one */
  const add = (one) => {
    for (const name of Object.keys(one.dependencies)) {
      const dependency = found.get(name);
      if (dependency !== undefined && !ordered.has(dependency)) add(dependency);
    }
    ordered.add(one);
  };
  for (const one of found.values()) add(one);
  return [...ordered];
}

/** Plugins to begin with, which `ambit init --plugin` writes: a folder for each kind, and `common`. */
const templates = join(root, "server/templates");

/** The kinds of plugins that `ambit init --plugin` writes. @returns {readonly string[]} */
export function templateKinds() {
  return readdirSync(templates).filter((kind) => existsSync(join(templates, kind, "manifest.json")));
}

/**
 * The published packages that a new plugin of a kind needs, with those that they depend on; in the order of `publishable`.
 * @param {string} kind
 */
export function publishableFor(kind) {
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(join(templates, kind, "manifest.json"), "utf8"),
  );
  const packages = publishable();
  const needed = new Set(Object.keys({ ...dependencies, ...devDependencies }));
  // Each comes after those that it depends on.
  for (const { name, dependencies: further } of packages.toReversed())
    if (needed.has(name)) for (const one of Object.keys(further)) needed.add(one);
  return packages.filter(({ name }) => needed.has(name));
}

/**
 * Packs packages as a registry would get them.
 * @param {readonly Publishable[]} packages
 * @param {string} folder where the archives go.
 * @returns {readonly string[]} the archives' paths, in the packages' order.
 */
export function pack(packages, folder) {
  // The page that the server serves is a part of its package.
  if (packages.some(({ name }) => name === "ambit"))
    execFileSync("npm", ["run", "--silent", "build:console"], { cwd: root, stdio: "inherit" });
  const chosen = packages.map((one) => `--workspace=${relative(root, one.folder)}`);
  const argv = ["pack", "--json", "--ignore-scripts", "--loglevel=error", "--pack-destination", folder];
  const output = execFileSync("npm", [...argv, ...chosen], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 2 ** 26,
  });
  /** @type {readonly { name: string, filename: string }[]} */
  const packed = JSON.parse(output);
  return packages.map(({ name }) => {
    const found = packed.find((one) => one.name === name);
    if (found === undefined) throw new Error(`npm packed no ${name}`);
    return join(folder, found.filename);
  });
}
