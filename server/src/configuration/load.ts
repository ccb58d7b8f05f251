import { existsSync, realpathSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import {
  type ImportPlugin,
  type MarkedValue,
  markedValues,
  messageOf,
  type PluginEntry,
  settingsProblems,
} from "@ambit/core";
import type { UpstreamProxy } from "@ambit/core/plugin";
import type { PermissionCeiling } from "@ambit/runner";
import { defaultPlugins, replacedDefaults } from "./defaults.js";
import { secretsOfProxy, upstreamProxyOf } from "./egress-settings.js";
import {
  type Environment,
  foreignEnvironments,
  markedInEnvironment,
  withForeignEnvironment,
} from "./environment.js";
import { pluginImporter } from "./import-plugin.js";
import { ConfigurationInvalid } from "./problems.js";
import { type Configuration, configurationSchema, type LogLevel } from "./schema.js";

/** The effective configuration, after the overrides of the environment. */
export interface Settings
  extends Omit<
    Configuration,
    "plugins" | "extends" | "without" | "permissions" | "interactions" | "log" | "egress"
  > {
  readonly plugins: NonNullable<Configuration["plugins"]>;
  /** It has its credentials: never log it. Undefined: connections are direct. */
  readonly upstreamProxy: UpstreamProxy | undefined;
  /** Whether these are the defaults. */
  readonly pluginsAreDefault: boolean;
  /** Default plugins that the configuration leaves out, perhaps by mistake. */
  readonly leftOut: readonly string[];
  readonly permissionCeiling: PermissionCeiling;
  readonly unaskedTools: "refuse" | "boundary";
  /** File with the key that authenticates users' answers. */
  readonly keyFile: string | undefined;
  /** Files with keys that the store's content is also read with. */
  readonly otherKeyFiles: readonly string[];
  /** Whether content of the store may be lost whose key is lost. */
  readonly mayLoseContent: boolean;
  /** Undefined: the command's default. */
  readonly logLevel: LogLevel | undefined;
  /** The operator's. Undefined: `server.auth` decides. */
  readonly token: string | undefined;
  /** Values that are marked as secret, of the configuration and of the environment. */
  readonly secrets: readonly MarkedValue[];
  readonly importPlugin: ImportPlugin;
  /** What the deployer should change in the environment, although it works. */
  readonly notices: readonly string[];
  /** Absolute path of the configuration; undefined without one. */
  readonly file: string | undefined;
}

const markedInConfiguration = markedValues(configurationSchema);

/** What overrides the configuration file. */
export interface Overrides {
  /** `--config`. */
  readonly config?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly console?: boolean | undefined;
}

/** Where the configuration comes from. */
interface ConfigurationSource {
  /** Where it is looked for, and what `--config` and AMBIT_CONFIG are relative to. */
  readonly folder: string;
  /** Given by the program that embeds Ambit: no file is looked for. */
  readonly given?: unknown;
  /** A folder whose files an agent changes: none is taken from it unnamed. */
  readonly copied?: string | undefined;
}

/**
 * Finds, reads and checks the configuration.
 * @throws ConfigurationInvalid with every problem.
 */
export async function loadSettings(
  ownEnvironment: Environment,
  overrides: Overrides,
  { folder, given, copied }: ConfigurationSource,
): Promise<Settings> {
  const file =
    given === undefined
      ? findConfiguration(overrides.config ?? ownEnvironment.AMBIT_CONFIG, folder, copied)
      : undefined;
  const written = file === undefined ? (given ?? {}) : await read(file);
  const parsed = configurationSchema.safeParse(written);
  if (!parsed.success) {
    throw new ConfigurationInvalid(
      file ?? "configuration",
      settingsProblems(parsed.error, configurationSchema, written),
    );
  }
  const { plugins, leftOut } = pluginSet(parsed.data, file ?? "configuration");
  const importPlugin = pluginImporter(file);
  const foreign = await foreignEnvironments(plugins, importPlugin);
  const environment = foreign.reduce(withForeignEnvironment, ownEnvironment);
  const { permissions, log, server, limits, probes, contract, webhooks } = parsed.data;
  const upstreamProxy = upstreamProxyOf(parsed.data.egress, environment.AMBIT_EGRESS_PROXY_CREDENTIALS);
  const { AMBIT_CONCURRENT_RUNS: concurrentRuns = limits.concurrentRuns } = environment;
  return {
    plugins: [...plugins],
    pluginsAreDefault: parsed.data.plugins === undefined,
    leftOut,
    require: parsed.data.require,
    store: parsed.data.store,
    memory: parsed.data.memory,
    workspace: parsed.data.workspace,
    credentials: parsed.data.credentials,
    upstreamProxy,
    tokens: parsed.data.tokens,
    limits: { ...limits, concurrentRuns },
    probes,
    contract,
    webhooks: { ...webhooks, secret: environment.AMBIT_WEBHOOK_SECRET ?? webhooks.secret },
    unaskedTools: permissions.unaskedTools,
    permissionCeiling: strictest(permissions.deny, environment.AMBIT_DENY_PERMISSIONS),
    keyFile: environment.AMBIT_INTERACTION_KEY_FILE ?? parsed.data.interactions.keyFile,
    otherKeyFiles: parsed.data.interactions.otherKeyFiles,
    mayLoseContent: parsed.data.interactions.onLostKey === "continue",
    logLevel: environment.AMBIT_LOG_LEVEL ?? log.level,
    server: {
      ...server,
      auth: environment.AMBIT_AUTH ?? server.auth,
      host: overrides.host ?? environment.AMBIT_HOST ?? server.host,
      address: environment.AMBIT_ADDRESS ?? server.address,
      replicaId: environment.AMBIT_REPLICA_ID ?? server.replicaId,
      port: overrides.port ?? environment.AMBIT_PORT ?? server.port,
      console: overrides.console ?? server.console,
      health: {
        ...server.health,
        host: environment.AMBIT_HEALTH_HOST ?? server.health.host,
        port: environment.AMBIT_HEALTH_PORT ?? server.health.port,
      },
    },
    token: environment.AMBIT_TOKEN,
    secrets: [
      ...markedInConfiguration(parsed.data),
      ...markedInEnvironment(environment),
      ...secretsOfProxy(upstreamProxy).map((value) => ({ kind: "password" as const, value })),
    ],
    importPlugin,
    notices: [...(environment.notices ?? []), ...withoutEffect(environment, server.health.port)],
    file,
  };
}

async function read(file: string): Promise<unknown> {
  if (file.endsWith(".json")) {
    const text = await readFile(file, "utf8");
    try {
      return JSON.parse(text);
    } catch {
      // Imported only for a file that has comments, or a mistake.
    }
    const { parseCommented, whyNotJson } = await import("./syntax-error.js");
    try {
      return parseCommented(text);
    } catch (cause) {
      throw new ConfigurationInvalid(file, [whyNotJson(text)], { cause });
    }
  }
  let module: unknown;
  try {
    module = await import(pathToFileURL(file).href);
  } catch (cause) {
    const { syntaxErrorPlace } = await import("./syntax-error.js");
    const place = cause instanceof SyntaxError ? await syntaxErrorPlace(file) : undefined;
    const where = place === undefined ? "" : `${place.replace(`${file}:`, "line ")}: `;
    throw new ConfigurationInvalid(file, [`can't be imported: ${where}${messageOf(cause)}`], { cause });
  }
  if (typeof module === "object" && module !== null && "default" in module) return module.default;
  throw new ConfigurationInvalid(file, ["has no default export: export default { plugins: […] }"]);
}

/** The health listener needs a port, which the environment or the configuration names. */
function withoutEffect(
  { AMBIT_HEALTH_HOST: host, AMBIT_HEALTH_PORT: port }: Environment,
  configured: number | undefined,
): readonly string[] {
  if (host === undefined || (port ?? configured) !== undefined) return [];
  return ["AMBIT_HEALTH_HOST has no effect without a port: set AMBIT_HEALTH_PORT too, or unset it"];
}

function strictest(one: PermissionCeiling, other: PermissionCeiling): PermissionCeiling {
  return one === true || other === true ? true : [...one, ...other];
}

/** The plugins to load, in order. */
interface PluginSet {
  readonly plugins: readonly PluginEntry[];
  /** Default plugins that `plugins` leaves out without saying that it means to. */
  readonly leftOut: readonly string[];
}

/**
 * The plugins that a configuration names. Those that it lists itself come first, in their order: the first sandbox that
 * covers a boundary is taken.
 * @throws ConfigurationInvalid
 */
function pluginSet(
  { plugins, extends: base, without }: Pick<Configuration, "plugins" | "extends" | "without">,
  where: string,
): PluginSet {
  if (without.length > 0 && (base === "none" || (base === undefined && plugins !== undefined)))
    throw new ConfigurationInvalid(where, [
      'without needs `extends: "defaults"`: else `plugins` names all of them',
    ]);
  const unknown = without.filter((name) => !defaultPlugins.includes(name));
  if (unknown.length > 0) {
    const expected = defaultPlugins.join(", ");
    throw new ConfigurationInvalid(
      where,
      unknown.map((name) => `without: '${name}' is no default plugin; expected one of ${expected}`),
    );
  }
  const listed = (plugins ?? []).map(nameOf);
  const both = without.filter((name) => listed.includes(name));
  if (both.length > 0)
    throw new ConfigurationInvalid(
      where,
      both.map((name) => `without: '${name}' is listed in plugins too: remove it from one of them`),
    );
  const others = defaultPlugins.filter((name) => !listed.includes(name));
  if (base === "none" || (base === undefined && plugins !== undefined))
    return { plugins: plugins ?? [], leftOut: base === undefined ? others : [] };
  const replaced = listed.map((name) => replacedDefaults.get(name));
  const remaining = others.filter((name) => !without.includes(name) && !replaced.includes(name));
  return { plugins: [...(plugins ?? []), ...remaining], leftOut: [] };
}

/** The name of a package, or of a plugin that is given itself, in the spelling of Ambit's packages. */
function nameOf(entry: PluginEntry): string {
  if (typeof entry === "string") return entry;
  const plugin = "use" in entry ? entry.use : entry;
  return typeof plugin === "string" ? plugin : `@ambit/${plugin.name}`;
}

const names = ["ambit.config.mjs", "ambit.config.json"] as const;

/**
 * The configuration's absolute path: the one that was named, or the one in the folder; undefined for none.
 * @param named by `--config` or AMBIT_CONFIG, relative to the folder.
 * @param copied of `--folder`: one that is found there isn't the user's by itself. It came with a repository, or an agent wrote it,
 * and it would run on the host.
 * @throws ConfigurationInvalid
 */
export function findConfiguration(
  named: string | undefined,
  folder: string,
  copied?: string,
): string | undefined {
  if (named !== undefined) {
    const path = resolve(folder, named);
    if (!existsSync(path)) throw new ConfigurationInvalid(named, ["there is no such file"]);
    if (!/\.(mjs|js|json)$/.test(path))
      throw new ConfigurationInvalid(named, ["must be a .mjs, .js or .json file"]);
    return path;
  }
  const paths = names.map((name) => join(folder, name)).filter((path) => existsSync(path));
  if (paths.length > 1) throw new ConfigurationInvalid(folder, [`has both ${names.join(" and ")}: keep one`]);
  const [path] = paths;
  if (path !== undefined && copied !== undefined && isIn(copied, path))
    throw new ConfigurationInvalid(path, [
      `lies in the folder that the agent's changes are for, and would run outside the sandbox: if you trust it, add --config ${path}; else run the command in another folder`,
    ]);
  if (path !== undefined) refuseForeign(path);
  return path;
}

/**
 * As root, a configuration that another user wrote would run with root's rights.
 * @throws ConfigurationInvalid
 */
export function refuseForeign(
  path: string,
  callerId: number | undefined = process.getuid?.(),
  { SUDO_UID: behindSudo }: NodeJS.ProcessEnv = process.env,
): void {
  if (callerId !== 0) return;
  const trusted = [0, ...(behindSudo === undefined ? [] : [Number(behindSudo)])];
  const foreign = [dirname(path), path].find((place) => !trusted.includes(statSync(place).uid));
  if (foreign === undefined) return;
  throw new ConfigurationInvalid(path, [
    `${foreign} belongs to another user, and would run as root: if you trust it, add --config ${path}; else run the command in another folder`,
  ]);
}

/** Whether the file, or what it links to, is in a folder that exists. */
function isIn(folder: string, file: string): boolean {
  if (!existsSync(folder)) return false;
  const root = realpathSync(folder);
  return [dirname(file), file].some((path) => `${realpathSync(path)}${sep}`.startsWith(`${root}${sep}`));
}
