/**
 * Bundles the command line and the server, with the plugins that come with Ambit, into few files: Node starts them
 * several times faster than the thousand they are made of. Run after tsc.
 */
import { readFile, rm } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { englishOnly, lazyBuiltins, nodeProgram, requireOfNode } from "../scripts/build/bundling.mjs";

const dist = fileURLToPath(new URL("dist", import.meta.url));
const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * The package that a compiled file belongs to.
 * @param {string} path
 * @returns {Promise<{ name: string, dist: string }>}
 */
async function packageOf(path) {
  for (let folder = dirname(path); folder.startsWith(root); folder = dirname(folder)) {
    const manifest = await readFile(join(folder, "package.json"), "utf8").catch(() => undefined);
    if (manifest !== undefined) return { name: JSON.parse(manifest).name, dist: join(folder, "dist") };
  }
  throw new Error(`${path} belongs to no package`);
}

/**
 * What a module finds relative to itself (programs for a sandbox, a worker, its package's version) stays in its own
 * package: there its `import.meta.url` goes on to point.
 * @type {import("esbuild").Plugin}
 */
const ownLocations = {
  name: "own-locations",
  setup({ onLoad }) {
    onLoad({ filter: /\/dist\/.*\.js$/ }, async ({ path }) => {
      if (path.includes("/node_modules/")) return undefined;
      const source = await readFile(path, "utf8");
      if (!source.includes("import.meta.url")) return undefined;
      const { name, dist: packageDist } = await packageOf(path);
      // The bundle lies in a folder of the server's own "dist"; another package's main file lies in that package's.
      const entry =
        name === "ambit" ? `new URL("../index.js", import.meta.url)` : `import.meta.resolve("${name}")`;
      const location = `new URL("./${relative(packageDist, path)}", ${entry}).href`;
      return { contents: source.replaceAll("import.meta.url", location) };
    });
  },
};

/**
 * `ambit verify` runs from its own module, so that the conformance kit isn't in the bundle.
 * @type {import("esbuild").Plugin}
 */
const outsideOfBundle = {
  name: "outside-of-bundle",
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/commands\/verify\.js$/ }, () => ({
      path: "../cli/commands/verify.js",
      external: true,
    }));
  },
};

/**
 * tsyringe ends the process unless reflect-metadata came before it. Where a chunk holds both, only an import of its own
 * makes sure of that.
 * @type {import("esbuild").Plugin}
 */
const polyfillFirst = {
  name: "polyfill-first",
  setup({ onLoad }) {
    onLoad({ filter: /\/node_modules\/tsyringe\/dist\/[^/]+\/index\.js$/ }, async ({ path }) => ({
      contents: `import "reflect-metadata";\n${await readFile(path, "utf8")}`,
    }));
  },
};

await rm(join(dist, "bundle"), { recursive: true, force: true });
await build({
  ...nodeProgram,
  entryPoints: { ambit: join(dist, "cli/main.js") },
  outdir: join(dist, "bundle"),
  splitting: true,
  format: "esm",
  // Some packages' CommonJS files can't be bundled, their ES modules can.
  mainFields: ["module", "main"],
  banner: { js: requireOfNode },
  plugins: [outsideOfBundle, ownLocations, englishOnly, polyfillFirst, lazyBuiltins],
});
