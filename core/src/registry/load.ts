/** The plugins of a configuration: how it names them, and how they are loaded. */

import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { knownShapeOf, type MarkedValue, markedValues, readableIssues } from "../contract/index.js";
import { type LoadFailure, messageOf, PluginLoadFailed } from "../errors.js";
import { inOffer, rememberOrigin } from "../plan/index.js";
import type { Plugin } from "../plugin/index.js";
import { OfferCollector, type Offered, type Registering, type Surroundings } from "./registrar.js";

const pluginSchema = z.custom<Plugin>(isPlugin);

const entrySchema = z.union(
  [
    z.string().min(1),
    pluginSchema,
    z.strictObject({
      /** A package's name, resolved from the configuration's folder, or the plugin itself. */
      use: z.union([z.string().min(1), pluginSchema]),
      /** The plugin's config, which its own schema checks. */
      config: z.unknown().optional(),
    }),
  ],
  {
    error:
      "must be a package's name, a plugin (an object with name, api, config and register), or { use: either, config }",
  },
);
export type PluginEntry = z.infer<typeof entrySchema>;

export const pluginEntriesSchema = z.array(entrySchema);

export const probeSettingsSchema = z.strictObject({
  /** Milliseconds that a probe may take; a claim without a finding by then is not proven. */
  timeoutMs: z.int().positive().default(120_000),
  /** Milliseconds after which evidence is too old to plan with, and the actor is probed again. */
  maxAgeMs: z.int().positive().default(3_600_000),
  /**
   * Milliseconds after which an actor without a proven claim, such as one whose platform didn't respond, is probed again. Never
   * above `maxAgeMs`.
   */
  retryMs: z.int().positive().default(15_000),
});
export type ProbeSettings = z.infer<typeof probeSettingsSchema>;

export function isPlugin(value: unknown): value is Plugin {
  return (
    typeof value === "object" &&
    value !== null &&
    "name" in value &&
    typeof value.name === "string" &&
    "api" in value &&
    "config" in value &&
    value.config instanceof Object &&
    "register" in value &&
    typeof value.register === "function"
  );
}

/** A line for each problem that a schema has with settings: path, reason, and the name that was probably meant. */
export function settingsProblems(error: z.ZodError, schema: z.ZodType, settings: unknown): readonly string[] {
  const validated = { value: settings, level: knownShapeOf(schema), path: [], keyName: "setting" } as const;
  return readableIssues(error.issues, validated).map(({ path, message }) =>
    path === "" ? message : `${path} ${message}`,
  );
}

/** Finds a package by name, from the deployer's folder: resolves with its default export. */
export type ImportPlugin = (name: string) => Promise<unknown>;

/** Thrown by an `ImportPlugin` for a name that resolves to no package. */
export class PluginNotFound extends Error {
  constructor(
    message: string,
    /** What the deployer should do. */
    readonly fix: string,
  ) {
    super(message);
  }
}

/** A plugin that was loaded, with its own configuration schema for documentation. */
export interface LoadedPlugin {
  readonly name: string;
  readonly configSchema: unknown;
}

interface Loaded {
  readonly plugins: readonly LoadedPlugin[];
  readonly offered: Offered;
  readonly secrets: readonly MarkedValue[];
}

/**
 * Loads every plugin of the configuration, in order. One may be listed several times with different configs, which offer
 * actors of different names.
 * @throws PluginLoadFailed with all failures of all plugins.
 */
export async function loadPlugins(
  entries: readonly PluginEntry[],
  importPlugin: ImportPlugin,
  surroundings: Surroundings,
): Promise<Loaded> {
  const failures: LoadFailure[] = [];
  const offered = new OfferCollector();
  const results = await Promise.all(entries.map((entry) => findPlugin(entry, importPlugin)));
  const plugins: LoadedPlugin[] = [];
  /** What was loaded under each plugin's name. */
  const byName = new Map<
    string,
    { readonly plugin: Plugin; readonly package: string | undefined; readonly configs: unknown[] }
  >();
  const secrets: MarkedValue[] = [];
  for (const result of results) {
    if ("failure" in result) {
      failures.push(result.failure);
      continue;
    }
    const { plugin, config, package: from } = result;
    const { name } = plugin;
    const earlier = byName.get(name);
    if (earlier !== undefined && earlier.plugin !== plugin) {
      const other = earlier.package ?? "the configuration's own";
      failures.push({
        plugin: from ?? name,
        reason: `has the same name as another plugin: ${other} is called '${name}' too`,
        fix: "load only one of them, or rename one in its definePlugin",
      });
      continue;
    }
    if (earlier?.configs.some((earlierConfig) => isDeepStrictEqual(earlierConfig, config))) {
      const fix = "list it once, or with different configs for actors of different names";
      failures.push({ plugin: name, reason: "is listed twice", fix });
      continue;
    }
    byName.set(name, { plugin, package: from, configs: [...(earlier?.configs ?? []), config] });
    const loaded = register(plugin, config, offered, { package: from, ...surroundings });
    if ("failure" in loaded) failures.push(loaded.failure);
    else secrets.push(...loaded.secrets);
    if (earlier !== undefined) continue;
    plugins.push({ name, configSchema: "failure" in loaded ? undefined : loaded.configSchema });
  }
  failures.push(...offered.failures);
  if (failures.length > 0)
    throw new PluginLoadFailed(
      failures.map((failure) => located(failure, byName.get(failure.plugin)?.package)),
    );
  return { plugins, offered, secrets: [...secrets, ...offered.secrets] };
}

/** A plugin's name with its package or file, since the deployer has to find the entry in the configuration. */
function located(failure: LoadFailure, from: string | undefined): LoadFailure {
  const { plugin } = failure;
  return from === undefined || from === plugin || from.endsWith(`/${plugin}`)
    ? failure
    : { ...failure, package: from };
}

type Found =
  | { readonly plugin: Plugin; readonly config: unknown; readonly package?: string }
  | { readonly failure: LoadFailure };

async function findPlugin(entry: PluginEntry, importPlugin: ImportPlugin): Promise<Found> {
  if (isPlugin(entry)) return { plugin: entry, config: {} };
  const { use, config = {} } = typeof entry === "string" ? { use: entry } : entry;
  if (typeof use !== "string") return { plugin: use, config };
  let imported: unknown;
  try {
    imported = await importPlugin(use);
  } catch (cause) {
    if (cause instanceof PluginNotFound) {
      return { failure: { plugin: use, reason: cause.message, fix: cause.fix, cause } };
    }
    const reason = `can't be imported (${messageOf(cause)})`;
    return {
      failure: { plugin: use, reason, fix: "correct it, or install a version that loads", cause },
    };
  }
  if (isPlugin(imported)) return { plugin: imported, config, package: use };
  const reason = "its default export is no plugin";
  return {
    failure: { plugin: use, reason, fix: "export default definePlugin({ name, api: 1, config, register })" },
  };
}

type Registered =
  | { readonly configSchema: unknown; readonly secrets: readonly MarkedValue[] }
  | { readonly failure: LoadFailure };

function register(
  plugin: Plugin,
  settings: unknown,
  offered: OfferCollector,
  registering: Omit<Registering, "plugin" | "config">,
): Registered {
  const { name } = plugin;
  const failed = (reason: string, fix: string, cause?: unknown): Registered => ({
    failure: { plugin: name, reason, fix, cause },
  });
  rememberOrigin(plugin, { plugin: name, package: registering.package, kind: "plugin" });
  if (plugin.api !== 1) {
    return failed(`was written for plugin api ${String(plugin.api)}, this is 1`, "load a version that fits");
  }
  let configSchema: unknown;
  let config: ReturnType<Plugin["config"]["safeParse"]>;
  try {
    configSchema = z.toJSONSchema(plugin.config, { io: "input", unrepresentable: "any" });
    config = plugin.config.safeParse(settings);
  } catch (cause) {
    const fix = "its author gives a synchronous schema of zod 4, such as z.strictObject({})";
    return failed(`its config is no schema that can be used (${messageOf(cause)})`, fix, cause);
  }
  if (!config.success) {
    const reason = `its config: ${settingsProblems(config.error, plugin.config, settings).join("; ")}`;
    return failed(reason, "correct its config; its schema is in `ambit plugins --json`", config.error);
  }
  const { data } = config;
  try {
    const returned = offered.during({ plugin: name, config: data, ...registering }, (offer) =>
      inOffer(plugin, () => plugin.register(offer, data)),
    );
    if (!(returned instanceof Promise)) return { configSchema, secrets: markedValues(plugin.config)(data) };
    // A later rejection must not end the process.
    returned.catch(() => undefined);
    return failed("register returned a promise", "its author moves what waits into probe() or open()");
  } catch (cause) {
    registering.log.debug({ plugin: name, error: cause }, "register threw");
    const fix =
      "its author moves what can fail into probe() or open(); AMBIT_LOG_LEVEL=debug shows where it was thrown";
    return failed(`register threw (${messageOf(cause)})`, fix, cause);
  }
}
