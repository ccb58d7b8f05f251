import type { PluginEntry } from "@ambit/core";
import { defaultPlugins, replacedDefaults } from "./defaults.js";
import { ConfigurationInvalid } from "./problems.js";
import type { Configuration } from "./schema.js";

/** The plugins to load, in order. */
export interface PluginSet {
  readonly plugins: readonly PluginEntry[];
  /** Default plugins that `plugins` leaves out without saying that it means to. */
  readonly leftOut: readonly string[];
}

/**
 * The plugins that a configuration names. Those that it lists itself come first, in their order: the first sandbox that
 * covers a boundary is taken.
 * @throws ConfigurationInvalid
 */
export function pluginSet(
  { plugins, extends: base, without }: Pick<Configuration, "plugins" | "extends" | "without">,
  where: string,
): PluginSet {
  if (without.length > 0 && (base === "none" || (base === undefined && plugins !== undefined)))
    throw new ConfigurationInvalid(where, [
      'without needs `extends: "defaults"`: else `plugins` names all of them',
    ]);
  const unknown = without.filter((name) => !defaultPlugins.includes(name));
  if (unknown.length > 0) {
    const known = defaultPlugins.join(", ");
    throw new ConfigurationInvalid(
      where,
      unknown.map((name) => `without: '${name}' is no default plugin; expected one of ${known}`),
    );
  }
  const own = (plugins ?? []).map(nameOf);
  const both = without.filter((name) => own.includes(name));
  if (both.length > 0)
    throw new ConfigurationInvalid(
      where,
      both.map((name) => `without: '${name}' is listed in plugins too: remove it from one of them`),
    );
  const others = defaultPlugins.filter((name) => !own.includes(name));
  if (base === "none" || (base === undefined && plugins !== undefined))
    return { plugins: plugins ?? [], leftOut: base === undefined ? others : [] };
  const replaced = own.map((name) => replacedDefaults.get(name));
  const kept = others.filter((name) => !without.includes(name) && !replaced.includes(name));
  return { plugins: [...(plugins ?? []), ...kept], leftOut: [] };
}

/** The name of a package, or of a plugin that is given itself, in the spelling of Ambit's packages. */
function nameOf(entry: PluginEntry): string {
  if (typeof entry === "string") return entry;
  const given = "use" in entry ? entry.use : entry;
  return typeof given === "string" ? given : `@ambit/${given.name}`;
}
