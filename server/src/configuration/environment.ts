import {
  type ForeignEnvironment,
  type ImportPlugin,
  isPlugin,
  markedValues,
  nearestKey,
  type PluginEntry,
  schemaFields,
  secret,
} from "@ambit/core";
import { z } from "zod";
import { denialSchema } from "../tenants/schema.js";
import { webhookSecretsSchema } from "../webhooks/settings.js";
import { proxyCredentials } from "./egress-settings.js";
import { ConfigurationInvalid } from "./problems.js";
import { authModes, logLevels } from "./schema.js";

/** A variable that a compose file passes on unset counts as absent. */
const blankIsAbsent = (value: unknown) => (value === "" ? undefined : value);
const optionalText = z.preprocess(blankIsAbsent, z.string().optional());
const optionalPort = z.preprocess(
  blankIsAbsent,
  z
    .string()
    .regex(/^\d{1,5}$/, "must be a port: 0 to 65535")
    .transform(Number)
    .refine((port) => port <= 65_535, "must be a port: 0 to 65535")
    .optional(),
);

/** How to make a token that can't be guessed. */
export const tokenFix = "set a long random value, such as `openssl rand -hex 32` prints";

export const environmentSchema = z.object({
  AMBIT_CONFIG: optionalText,
  AMBIT_HOST: optionalText,
  AMBIT_PORT: optionalPort,
  AMBIT_HEALTH_HOST: optionalText,
  AMBIT_HEALTH_PORT: optionalPort,
  AMBIT_ADDRESS: z.preprocess(
    blankIsAbsent,
    z.url({ protocol: /^https?$/, error: "must be an http:// or https:// URL" }).optional(),
  ),
  // An empty token is always a mistake: the deployer believes that the server is protected.
  AMBIT_TOKEN: secret(
    z
      .string()
      .min(1, "is empty: set a value, or unset it")
      .regex(/^[\x21-\x7e]*$/, "must be printable ASCII without spaces, so that a header can carry it")
      // A shorter one can't be redacted, since it occurs in any text. An address that other machines reach needs a longer
      // one.
      .refine(({ length }) => length === 0 || length >= 4, `is too short: ${tokenFix}`),
  ).optional(),
  AMBIT_AUTH: z.preprocess(
    blankIsAbsent,
    z.enum(authModes, { error: `must be one of ${authModes.join(", ")}` }).optional(),
  ),
  AMBIT_CONCURRENT_RUNS: z.preprocess(
    blankIsAbsent,
    z
      .string()
      .regex(/^[1-9]\d{0,5}$/, "must be a number of runs: 1 to 999999")
      .transform(Number)
      .optional(),
  ),
  AMBIT_DENY_PERMISSIONS: z
    .preprocess(blankIsAbsent, z.string().optional())
    .transform((text) => (text === "true" ? true : patternsOf(text ?? "")))
    .pipe(denialSchema),
  AMBIT_INTERACTION_KEY_FILE: optionalText,
  // Not part of a URL, which would be in arguments and logs.
  AMBIT_EGRESS_PROXY_CREDENTIALS: z.preprocess(
    blankIsAbsent,
    secret(z.string().regex(proxyCredentials, "must be user:password"), "password").optional(),
  ),
  AMBIT_REPLICA_ID: z.preprocess(blankIsAbsent, z.string().max(256).optional()),
  AMBIT_WEBHOOK_SECRET: z.preprocess(
    (value) => (typeof value === "string" && value.trim() !== "" ? value.trim().split(/\s+/) : undefined),
    webhookSecretsSchema.optional(),
  ),
  AMBIT_LOG_LEVEL: z.preprocess(
    blankIsAbsent,
    z.enum(logLevels, { error: `must be one of ${logLevels.join(", ")}` }).optional(),
  ),
});

/** The settings from the process's environment. */
export interface Environment extends z.output<typeof environmentSchema> {
  /** Notices about variables without effect, to be logged. Absent if there are none. */
  readonly notices?: readonly string[];
  /** What it was read from, without the secrets. */
  readonly variables: NodeJS.ProcessEnv;
}

/** The secrets among the variables. */
export const markedInEnvironment = markedValues(environmentSchema);

/** Variables with a secret, which are deleted once they are read. */
const secretVariables = schemaFields(environmentSchema).flatMap(({ name, kind }) =>
  kind === undefined ? [] : [name],
);

/**
 * Reads the variables once, and deletes the tokens from them, so that later code in this process can't find them there.
 * @throws ConfigurationInvalid naming each variable and its fix.
 */
export function takeEnvironment(variables: NodeJS.ProcessEnv): Environment {
  const copy = { ...variables };
  for (const name of secretVariables) delete variables[name];
  const parsed = parse(copy);
  const notices = misspelled(variables);
  return { ...parsed, ...(notices.length === 0 ? {} : { notices }), variables };
}

/**
 * The same with another program's variables in place of Ambit's that aren't set. Their secrets are deleted too.
 * @throws ConfigurationInvalid naming each of its variables and the fix.
 */
export function withForeignEnvironment(own: Environment, foreign: ForeignEnvironment): Environment {
  const variables = own.variables;
  const taken = Object.entries(own).flatMap(([name, value]) =>
    secretVariables.includes(name) && value !== undefined ? [name] : [],
  );
  const translated = foreignValues(variables, foreign, taken);
  for (const [name, theirs] of Object.entries(foreign.renamed)) {
    if (isOfPlugin(name) || secretVariables.includes(name)) for (const one of theirs) delete variables[one];
  }
  const parsed = parse(translated.variables, translated.sources);
  const ours = Object.entries(parsed).filter(([name]) => name in translated.variables);
  for (const [name, value] of Object.entries(translated.variables))
    if (isOfPlugin(name)) variables[name] = value;
  const notices = [...(own.notices ?? []), ...translated.notices];
  return { ...own, ...Object.fromEntries(ours), ...(notices.length === 0 ? {} : { notices }) };
}

/** Whether a plugin reads the variable, when it is loaded. */
function isOfPlugin(name: string): boolean {
  return !(name in environmentSchema.shape);
}

/** @throws ConfigurationInvalid */
function parse(
  variables: NodeJS.ProcessEnv,
  sources: Readonly<Record<string, string>> = {},
): z.output<typeof environmentSchema> {
  const parsed = environmentSchema.safeParse(variables);
  if (parsed.success) return parsed.data;
  throw new ConfigurationInvalid(
    "environment",
    parsed.error.issues.map(({ path, message }) => {
      const name = String(path[0]);
      return `${sources[name] ?? name} ${message}`;
    }),
  );
}

/** Variables that look like a typo of one of ours, and have no effect. */
function misspelled(variables: NodeJS.ProcessEnv): string[] {
  const names = Object.keys(environmentSchema.shape);
  return Object.keys(variables).flatMap((name) => {
    if (!name.startsWith("AMBIT_") || names.includes(name)) return [];
    const meant = nearestKey(name, names);
    return meant === undefined ? [] : [`${name} has no effect: did you mean ${meant}?`];
  });
}

/** `Bash(rm:*),write_file`: patterns are separated by commas outside parentheses. */
function patternsOf(text: string): string[] {
  return [...text.matchAll(/(?:\([^)]*\)|[^,(])+/g)].map(([pattern]) => pattern.trim()).filter(Boolean);
}

/** What was found in another program's variables. */
interface ForeignValues {
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
  const translatedNames = new Set(Object.values(renamed).flat());
  for (const name of Object.keys(given).filter(isSet).sort()) {
    const place = Object.hasOwn(moved, name) ? moved[name] : undefined;
    if (place !== undefined) notices.push(`${name} has no effect: set ${place} in the configuration`);
    else if (others.test(name) && !translatedNames.has(name))
      notices.push(`${name} has no effect, and no counterpart here: unset it`);
  }
  return { variables, sources, notices };
}
