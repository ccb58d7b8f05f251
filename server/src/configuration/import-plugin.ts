import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type ImportPlugin, nearestKey, PluginNotFound } from "@ambit/core";
import { furtherPlugins, ownPlugins } from "./defaults.js";

/**
 * Imports a package by name from the configuration's folder, so that a deployer installs plugins next to the
 * configuration; a plugin that comes with Ambit needs no installation. Where the folder has that very package, it is
 * taken from the command line's bundle, which starts in half the time.
 *
 * @param configuration absolute path of the file, or undefined when there is none.
 */
export function pluginImporter(configuration: string | undefined): ImportPlugin {
  return async (name) => {
    const importOwn = ownPlugins[name];
    const path = configuration === undefined ? undefined : resolveFrom(configuration, name);
    if (importOwn !== undefined && (path === undefined || path === ownPath(name)))
      return defaultExport(await importOwn());
    if (path === undefined) throw notFound(name, configuration);
    return defaultExport(await importFile(path));
  };
}

/** @throws Error that says where a file of the plugin doesn't parse */
async function importFile(path: string): Promise<unknown> {
  try {
    return await import(pathToFileURL(path).href);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    const { syntaxErrorPlace } = await import("./syntax-error.js");
    const place = await syntaxErrorPlace(path);
    throw new Error(`${place ?? path}: ${cause.message}`, { cause });
  }
}

/** The main file of a package that `pluginImporter` imports; undefined when there is none. */
export function pluginPath(name: string, configuration: string | undefined): string | undefined {
  const path = configuration === undefined ? undefined : resolveFrom(configuration, name);
  return path ?? (name in ownPlugins ? ownPath(name) : undefined);
}

function notFound(name: string, configuration: string | undefined): PluginNotFound {
  const scope = "@ambit/";
  const shortNames = [...Object.keys(ownPlugins), ...furtherPlugins].map((full) => full.slice(scope.length));
  const meant = nearestKey(name.startsWith(scope) ? name.slice(scope.length) : name, shortNames);
  const reason = `no package of that name is found from ${configuration ?? "here"}`;
  if (meant !== undefined && name !== `${scope}${meant}`) {
    return new PluginNotFound(reason, `did you mean "${scope}${meant}"?`);
  }
  const install = `install it next to the configuration: npm install ${name}`;
  // A plugin of Ambit's whose client, such as a platform's, isn't installed with the command line.
  if (furtherPlugins.includes(name)) return new PluginNotFound(reason, install);
  return new PluginNotFound(reason, `check the name; if it is right, ${install}`);
}

function defaultExport(module: unknown): unknown {
  return typeof module === "object" && module !== null && "default" in module ? module.default : undefined;
}

/** Where a plugin that comes with Ambit lies. */
function ownPath(name: string): string {
  return fileURLToPath(import.meta.resolve(name));
}

/** Undefined when there is no such package. */
function resolveFrom(configuration: string, name: string): string | undefined {
  try {
    return createRequire(configuration).resolve(name);
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error)) throw error;
    if (error.code === "MODULE_NOT_FOUND") return undefined;
    if (error.code !== "ERR_PACKAGE_PATH_NOT_EXPORTED") throw error;
    throw new Error(
      `its package.json exports nothing under the condition "default"; import it in ambit.config.mjs instead`,
      { cause: error },
    );
  }
}
