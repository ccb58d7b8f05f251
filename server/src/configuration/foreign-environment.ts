import { type ForeignEnvironment, type ImportPlugin, isPlugin, type PluginEntry } from "@ambit/core";

/** What was found in another program's variables. */
export interface ForeignValues {
  /** Ambit's variables, with the values of the others. */
  readonly variables: Readonly<Record<string, string>>;
  /** The variable that each was read from. */
  readonly sources: Readonly<Record<string, string>>;
  /** One sentence per variable that was read or has no effect, with what to set instead. Without values. */
  readonly notices: readonly string[];
}

/**
 * The variables that these plugins read in place of Ambit's. A plugin that can't be imported has none: loading it reports
 * why.
 */
export async function foreignEnvironments(
  entries: readonly PluginEntry[],
  importPlugin: ImportPlugin,
): Promise<readonly ForeignEnvironment[]> {
  const imported = await Promise.allSettled(
    entries.map(async (entry) => {
      const plugin = typeof entry === "object" && "use" in entry ? entry.use : entry;
      return typeof plugin === "string" ? await importPlugin(plugin) : plugin;
    }),
  );
  return imported.flatMap((outcome) =>
    outcome.status === "fulfilled" && isPlugin(outcome.value) ? (outcome.value.foreignEnvironment ?? []) : [],
  );
}

/**
 * Reads the variables of another program. A blank value counts as unset. Pure.
 * @param taken Ambit's variables that were set and are no longer among those given.
 */
export function foreignValues(
  given: NodeJS.ProcessEnv,
  { renamed, moved, others }: ForeignEnvironment,
  taken: readonly string[],
): ForeignValues {
  const variables: Record<string, string> = {};
  const sources: Record<string, string> = {};
  const notices: string[] = [];
  const isSet = (name: string) => (given[name] ?? "").trim() !== "";
  for (const [ours, theirs] of Object.entries(renamed)) {
    const isOurs = isSet(ours) || taken.includes(ours);
    for (const name of theirs.filter(isSet)) {
      if (isOurs || variables[ours] !== undefined) {
        notices.push(`${name} has no effect where ${isOurs ? ours : "another name of it"} is set: unset it`);
        continue;
      }
      variables[ours] = (given[name] ?? "").trim();
      sources[ours] = name;
      notices.push(`${name} is read as ${ours}: rename it`);
    }
  }
  const known = new Set(Object.values(renamed).flat());
  for (const name of Object.keys(given).filter(isSet).sort()) {
    const place = Object.hasOwn(moved, name) ? moved[name] : undefined;
    if (place !== undefined) notices.push(`${name} has no effect: set ${place} in the configuration`);
    else if (others.test(name) && !known.has(name))
      notices.push(`${name} has no effect, and no counterpart here: unset it`);
  }
  return { variables, sources, notices };
}
