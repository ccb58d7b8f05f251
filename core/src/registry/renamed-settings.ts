/** Paths of settings, parts joined by dots: the older name, and the one it has now. */
export type RenamedSettings = Readonly<Record<string, string>>;

/** One older name that a configuration still uses. */
export interface RenamedSetting {
  readonly path: string;
  readonly now: string;
}

/**
 * A configuration with the names that its settings have now. Where both the older and the current name are given, the
 * older one stays, for the schema to refuse. Pure: the given configuration is left as it is.
 */
export function withCurrentNames(
  config: unknown,
  renamed: RenamedSettings,
): { readonly config: unknown; readonly used: readonly RenamedSetting[] } {
  const used: RenamedSetting[] = [];
  let current = config;
  for (const [path, now] of Object.entries(renamed)) {
    const moved = move(current, path.split("."), now.split(".").at(-1) ?? now);
    if (moved === undefined) continue;
    current = moved;
    used.push({ path, now });
  }
  return { config: current, used };
}

/** A copy in which the setting at a path has another name; undefined when there is nothing to rename. */
function move(value: unknown, [first, ...rest]: readonly string[], name: string): unknown {
  if (typeof value !== "object" || value === null || first === undefined) return undefined;
  const entries = Object.entries(value);
  const found = entries.find(([key]) => key === first);
  if (found === undefined) return undefined;
  if (rest.length === 0 && name in value) return undefined;
  const moved = rest.length === 0 ? found[1] : move(found[1], rest, name);
  if (moved === undefined) return undefined;
  return Object.fromEntries(
    entries.map(([key, setting]) =>
      key === first ? [rest.length === 0 ? name : key, moved] : [key, setting],
    ),
  );
}
