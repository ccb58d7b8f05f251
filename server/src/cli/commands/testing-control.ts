import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import type { SandboxBackend } from "@ambit/core/plugin";
import { type Control, operatorControl } from "@ambit/testkit";
import { ownPlugins } from "../../configuration/defaults.js";
import type { Ambit } from "../../open.js";

/** What a package exports from its test-only entry, `<package>/testing`. */
interface TestingEntry {
  /** Undefined for a backend of another kind. */
  control(backend: SandboxBackend): Control | undefined;
}

/**
 * The control that a backend's own package exports, or an unsandboxed one for a backend without.
 *
 * @throws Error when the entry exists and can't be loaded.
 */
export async function controlFor(
  backend: SandboxBackend,
  { registry, settings }: Pick<Ambit, "registry" | "settings">,
): Promise<Control> {
  const owner = registry.registrations.find(({ actor }) => actor === backend)?.plugin;
  for (const entry of settings.plugins) {
    const name = packageOf(entry);
    if (name === undefined || pluginNameOf(await settings.importPlugin(name)) !== owner) continue;
    const testing = await importTesting(name, settings.file);
    const control = testing?.control(backend);
    if (control !== undefined) return control;
  }
  return operatorControl(backend);
}

/** Undefined for a plugin that the configuration gives as a value. */
function packageOf(entry: unknown): string | undefined {
  if (typeof entry === "string") return entry;
  const isUse = typeof entry === "object" && entry !== null && "use" in entry;
  return isUse && typeof entry.use === "string" ? entry.use : undefined;
}

function pluginNameOf(plugin: unknown): unknown {
  return typeof plugin === "object" && plugin !== null && "name" in plugin ? plugin.name : undefined;
}

/** Undefined where the package has no such entry. */
async function importTesting(
  name: string,
  configuration: string | undefined,
): Promise<TestingEntry | undefined> {
  const specifier = `${name}/testing`;
  const isInstalled = configuration !== undefined && resolves(configuration, name);
  const from = isInstalled ? configuration : ownPlugins[name] && import.meta.filename;
  if (from === undefined || !resolves(from, specifier)) return undefined;
  const module: unknown = await import(pathToFileURL(createRequire(from).resolve(specifier)).href);
  return isTestingEntry(module) ? module : undefined;
}

function resolves(from: string, specifier: string): boolean {
  try {
    createRequire(from).resolve(specifier);
    return true;
  } catch {
    return false;
  }
}

function isTestingEntry(module: unknown): module is TestingEntry {
  return (
    typeof module === "object" &&
    module !== null &&
    "control" in module &&
    typeof module.control === "function"
  );
}
