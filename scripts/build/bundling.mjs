/** What bundles of Node programs have in common: they start fast. */

/**
 * zod's messages in fifty languages, of which it uses the English ones: imported by themselves.
 * @type {import("esbuild").Plugin}
 */
export const englishOnly = {
  name: "english-only",
  setup({ onLoad }) {
    onLoad({ filter: /\/node_modules\/zod\/v4\/locales\/index\.js$/ }, () => ({ contents: "export {};" }));
  },
};

/**
 * An `import` of one of Node's modules reads every property that it exports, also those that load more when they are read:
 * `node:http` loads an HTTP client and its fetch that way. Taken as CommonJS, a property is read when it is used.
 * @type {import("esbuild").Plugin}
 */
export const lazyBuiltins = {
  name: "lazy-builtins",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path, kind }) =>
      kind === "import-statement" ? { path, namespace: "builtin" } : { path, external: true },
    );
    onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};

/** For packages that are CommonJS and ask for Node's own modules. */
export const requireOfNode = `import { createRequire as createBundleRequire } from "node:module"; const require = createBundleRequire(import.meta.url);`;

/** @type {import("esbuild").BuildOptions} */
export const nodeProgram = {
  bundle: true,
  platform: "node",
  target: "node22",
  minifyWhitespace: true,
  minifySyntax: true,
  sourcemap: "linked",
  sourcesContent: false,
  plugins: [englishOnly, lazyBuiltins],
  logLevel: "warning",
};

/**
 * Of a program that is brought into a sandbox or its gate: one file, which can also be run from a pipe, and starts without
 * Node's loader of ES modules. Nothing inside may need a package: what isn't Node's own is bundled, or the build fails.
 * @type {import("esbuild").BuildOptions}
 */
export const insideProgram = {
  bundle: true,
  format: "cjs",
  platform: "node",
  // The oldest Node that a sandbox may have.
  target: "node18",
  minifySyntax: true,
  minifyWhitespace: true,
  packages: "bundle",
  plugins: [englishOnly],
  logLevel: "warning",
};
