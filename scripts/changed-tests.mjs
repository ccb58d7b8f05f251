/**
 * Which tests a change can break: those whose imports and paths lead to a changed file, through every package. A package
 * that depends on another without an import starts its program; so do all tests of packages that depend on the server.
 * Tests of the repository read every file.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path/posix";
import { globbySync } from "globby";
import { importsOf, relativePathsOf } from "../test/repository/rules/source-file.ts";
import { root } from "./setup.mjs";
import { isSlow } from "./vitest/tiers.ts";

/** A change of these can break every test. */
const everywhere = /^(package(-lock)?\.json|tsconfig[\w.]*\.json|vitest\.\w+\.ts|scripts\/vitest\/.*)$/;
const server = "ambit";

/** @typedef {{ folder: string, name: string, targets: Readonly<Record<string, unknown>>, dependencies: readonly string[] }} Package */

/** @param {readonly string[]} args */
function git(...args) {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`"git ${args.join(" ")}" failed: ${stderr}`);
  return stdout.split("\n").filter((line) => line !== "");
}

/** @returns {readonly Package[]} */
function packagesHere() {
  const { workspaces } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return globbySync(
    workspaces.map((/** @type {string} */ folder) => `${folder}/package.json`),
    { cwd: root },
  ).map((path) => {
    const manifest = JSON.parse(readFileSync(join(root, path), "utf8"));
    return {
      folder: dirname(path),
      name: manifest.name,
      targets: { ...manifest.exports, ...manifest.imports },
      dependencies: Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }),
    };
  });
}

/** The source of what is built, `dist/plan/index.js`, or the path itself; undefined if it is no file. @param {string} path */
function sourceOf(path) {
  const source = path.replace(/(^|\/)dist\//, "$1src/");
  const candidates = [source, source.replace(/\.([mc]?)js$/, ".$1ts"), path];
  return candidates.find((candidate) => statSync(join(root, candidate), { throwIfNoEntry: false })?.isFile());
}

/** What uses what, over all files of the repository. */
export class ImportGraph {
  #packages = packagesHere();
  #files = globbySync("**/*.{ts,mts,mjs,js}", {
    cwd: root,
    ignore: ["**/node_modules/**", "**/dist/**", ".cache/**", "**/fixtures/**"],
  });
  /** Of each file, those that use it. @type {Map<string, Set<string>>} */
  #users = new Map();

  constructor() {
    for (const path of this.#files) this.#addImports(path);
    for (const user of this.#packages) this.#addPrograms(user);
  }

  /** @param {readonly string[]} changed paths from the repository's root */
  testsFor(changed) {
    const tests = this.#files.filter((path) => path.endsWith(".test.ts"));
    if (changed.some((path) => everywhere.test(path))) return tests;
    const reached = new Set(changed);
    for (const path of reached) for (const user of this.#users.get(path) ?? []) reached.add(user);
    return tests.filter((path) => reached.has(path) || path.startsWith("test/repository/"));
  }

  /** A program that isn't there as a source is bundled from those of its package. @param {string} path */
  #bundled(path) {
    const folder = /\.[cm]?js$/.test(path) ? this.#ownerOf(path)?.folder : undefined;
    return this.#files.filter((source) => source.startsWith(`${folder}/src/`));
  }

  /** Packages may lie in each other's folders. @param {string} path */
  #ownerOf(path) {
    return this.#packages
      .filter(({ folder }) => path.startsWith(`${folder}/`))
      .toSorted((left, right) => right.folder.length - left.folder.length)[0];
  }

  /** @param {string | undefined} used of which there is none for what isn't ours @param {string} user */
  #add(used, user) {
    if (used === undefined) return;
    const users = this.#users.get(used) ?? new Set();
    this.#users.set(used, users.add(user));
  }

  /** @param {string} path */
  #addImports(path) {
    const file = { path, text: readFileSync(join(root, path), "utf8") };
    const place = dirname(path);
    for (const name of relativePathsOf(file)) {
      const target = normalize(join(place, name));
      for (const used of [sourceOf(target) ?? this.#bundled(target)].flat()) this.#add(used, path);
    }
    for (const name of importsOf(file)) {
      const owner = name.startsWith("#")
        ? this.#ownerOf(path)
        : this.#packages.find((exporting) => `${name}/`.startsWith(`${exporting.name}/`));
      if (owner !== undefined) this.#add(exportedBy(owner, name), path);
    }
  }

  /** @param {Package} user */
  #addPrograms({ folder, dependencies }) {
    const files = this.#files.filter((path) => this.#ownerOf(path)?.folder === folder);
    const tests = files.filter((path) => path.endsWith(".test.ts"));
    for (const path of files) this.#add(`${folder}/package.json`, path);
    for (const used of this.#packages) {
      if (!dependencies.includes(used.name)) continue;
      const sources = this.#files.filter((path) => path.startsWith(`${used.folder}/src/`));
      const isImported = sources.some((path) => files.some((user) => this.#users.get(path)?.has(user)));
      const users = used.name === server ? tests : isImported ? [] : files;
      for (const source of sources) for (const path of users) this.#add(source, path);
    }
  }
}

/** @param {Package} owner @param {string} name "@ambit/core/plugin", or "#health-thread" of the package itself */
function exportedBy({ folder, name: exporting, targets }, name) {
  const target = targets[name.startsWith("#") ? name : `.${name.slice(exporting.length)}`];
  const path = typeof target === "string" ? target : Object(target).default;
  return typeof path === "string" ? sourceOf(normalize(join(folder, path))) : undefined;
}

/**
 * @param {string} [since] a commit. Default: where this branch left origin/main. Changes that aren't committed count.
 * @returns {{ base: string, quick: readonly string[], slow: readonly string[] }} paths of test files
 */
export function changedTests(since) {
  const [base = "HEAD"] = since === undefined ? git("merge-base", "HEAD", "origin/main") : [since];
  const paths = [...git("diff", "--name-only", base), ...git("ls-files", "--others", "--exclude-standard")];
  const tests = new ImportGraph().testsFor(paths);
  return { base, quick: tests.filter((path) => !isSlow(path)), slow: tests.filter(isSlow) };
}
