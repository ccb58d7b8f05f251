import type { KeyObject } from "node:crypto";
import { type Log, Registry } from "@ambit/core";
import type { RunRequest } from "@ambit/core/contract";
import { Runner, secretsIn } from "@ambit/runner";
import type { LocalEntry } from "@ambit/workspace";
import { FileSealing } from "@ambit/workspace/blobs";
import type { Environment } from "./configuration/environment.js";
import { loadSettings, type Overrides, type Settings } from "./configuration/load.js";
import { ConfigurationInvalid } from "./configuration/problems.js";
import type { ConfigurationInput, LogLevel } from "./configuration/schema.js";
import { CredentialCallbacks } from "./credentials/callbacks.js";
import { EvidenceFile } from "./evidence-file.js";
import { KeptFiles, type KeptFilesOptions } from "./files/kept-files.js";
import {
  defaultKeyFile,
  earlierKey,
  interactionKey,
  lastingKey,
  namedInteractionKey,
  signerIn,
} from "./key-files.js";
import { LineCopies, LogRedaction, openLog } from "./logging/log.js";
import { Previews } from "./preview/previews.js";
import { Tenants, tokenHeadersOf } from "./tenants/caller.js";
import { type UnhandledErrors, UnhandledErrorWatch } from "./unhandled.js";
import { Webhooks } from "./webhooks/webhooks.js";

/** Everything that a server or a command works with: loaded, but not yet active. */
export interface Ambit {
  readonly settings: Settings;
  readonly registry: Registry;
  readonly runner: Runner;
  readonly log: Log;
  readonly redaction: LogRedaction;
  readonly tenants: Tenants;
  readonly webhooks: Webhooks;
  readonly files: KeptFiles;
  readonly previews: Previews;
  /** Key of the ids of interactions, and of what is sealed in the store. */
  readonly interactionKey: () => Promise<KeyObject>;
  /** Undefined if evidence isn't kept between processes. */
  readonly evidence: EvidenceFile | undefined;
}

export interface OpenAmbitOptions {
  readonly environment: Environment;
  readonly overrides?: Overrides;
  /** The folder in which a configuration is looked for. Default: the working folder. */
  readonly folder?: string;
  /** A folder whose files an agent changes: no configuration is taken from it unnamed. */
  readonly copied?: string | undefined;
  /** Instead of a file, for a program that embeds Ambit. */
  readonly configuration?: ConfigurationInput;
  /** Used if neither the configuration nor the environment sets it. */
  readonly logLevel: LogLevel;
  /**
   * Whether evidence is taken from an earlier process, and kept for the next. Default: as
   * `probes.keepAcrossRestarts` says.
   */
  readonly keepsEvidence?: boolean;
  /** What of this host comes into every new workspace after its sources. Default: nothing. */
  readonly local?: (() => readonly LocalEntry[]) | undefined;
  /** The folder of this host that is the workspace of a run, without links in its path. Undefined, and the default: the run has a new one. */
  readonly workspaceFolderOf?: ((request: RunRequest) => string | undefined) | undefined;
  /** Whether files of outputs end with this process. Default false. */
  readonly keepsNoFiles?: boolean;
  /**
   * What becomes of errors that nothing handles, where this process is Ambit's alone. Default: nothing; they are the embedding
   * program's.
   */
  readonly unhandled?: UnhandledErrors;
}

/**
 * Reads the configuration and loads the plugins. Doesn't probe: a run or a plan waits for that.
 * @throws ConfigurationInvalid, PluginLoadFailed
 */
export async function openAmbit(options: OpenAmbitOptions): Promise<Ambit> {
  const { environment, overrides = {}, folder = process.cwd(), copied, configuration } = options;
  const settings = await loadSettings(environment, overrides, { folder, copied, given: configuration });
  const redaction = new LogRedaction();
  const { upstreamProxy } = settings;
  const webhooks = new Webhooks(settings.webhooks, settings.tokens, upstreamProxy);
  redaction.hide(secretsIn(settings.secrets));
  const copies = new LineCopies();
  const log = openLog(settings.logLevel ?? options.logLevel, redaction, copies);
  const watch = options.unhandled && new UnhandledErrorWatch(log, options.unhandled);
  for (const notice of settings.notices) log.warn({}, notice);
  const hasTenants = settings.tokens.length > 0;
  const { plugins, importPlugin, probes } = settings;
  const registry = await Registry.load(plugins, importPlugin, probes, log, {
    hasTenants,
    upstreamProxy,
  });
  redaction.hide(secretsIn(registry.secrets));
  copies.giveTo(registry.observers);
  const keepsEvidence = options.keepsEvidence ?? settings.probes.keepAcrossRestarts;
  const evidence = keepsEvidence ? await EvidenceFile.for(settings, registry) : undefined;
  await evidence?.restore(registry);
  const { limits, permissionCeiling, unaskedTools, contract, keyFile } = settings;
  // A file that the configuration names is shared with other replicas. Without it, their answers would silently not
  // count.
  const key =
    keyFile === undefined ? interactionKey(defaultKeyFile(), log) : await namedInteractionKey(keyFile);
  // Without a store, runs end with the process.
  const temporary = options.keepsNoFiles === true || registry.store === undefined;
  const files = new KeptFiles({
    registry,
    settings: settings.workspace,
    upstreamProxy,
    log,
    temporary,
    local: options.local,
    sign: signerIn(settings.workspace.signingKeyFile),
    ...(await sealingOf(settings, temporary, key)),
  });
  const previews = new Previews(settings.server.preview, key, log, tokenHeadersOf(registry.dialects));
  const runner = new Runner({
    registry,
    limits,
    permissionCeiling,
    unaskedTools,
    contract,
    log,
    minimum: settings.require,
    workspaces: files.workspaces,
    workspaceFolderOf: options.workspaceFolderOf,
    previews,
    credentialRefresh: new CredentialCallbacks(settings.credentials, hasTenants, upstreamProxy),
    hasTenants,
    webhookIssues: (webhook, project) => webhooks.issues(webhook, project),
    interactionKey: key,
    hideSecrets: (secrets) => redaction.hide(secrets),
  });
  if (watch !== undefined) watch.runner = runner;
  const problems = runner.prewarmIssues.map(({ path, message }) => `${path}: ${message}`);
  if (problems.length > 0) throw new ConfigurationInvalid(settings.file ?? "configuration", problems);
  return {
    settings,
    registry,
    runner,
    log,
    redaction,
    tenants: tenantsOf(settings, registry),
    webhooks,
    files,
    previews,
    interactionKey: key,
    evidence,
  };
}

/** How kept files are encrypted, if they are, and what belongs to sessions. @throws ConfigurationInvalid for an earlier key that can't be read */
async function sealingOf(
  { workspace: { encrypt, earlierKeyFiles }, keyFile }: Settings,
  temporary: boolean,
  key: () => Promise<KeyObject>,
): Promise<Pick<KeptFilesOptions, "sealing" | "stateSealing">> {
  const earlier = await Promise.all(
    earlierKeyFiles.map((file, index) => earlierKey(`workspace.earlierKeyFiles[${index}]`, file)),
  );
  // What ends with this process may have a key that does.
  const newest = keyFile === undefined && !temporary ? () => lastingKey(defaultKeyFile()) : key;
  const sealing = async () => new FileSealing(await newest(), earlier);
  return { sealing: encrypt ? sealing : undefined, stateSealing: sealing };
}

/** @throws ConfigurationInvalid for a tenant that may use only what isn't loaded: it would look like a limit. */
function tenantsOf({ tokens, file }: Settings, { registrations }: Registry): Tenants {
  const loaded = (kind: "sandbox" | "harness") =>
    registrations.filter((one) => one.kind === kind).map(({ actor }) => actor.name);
  const problems = tokens.flatMap(({ sandboxes = [], harnesses = [] }, index) => [
    ...unknownIn(`tokens[${index}].sandboxes`, sandboxes, loaded("sandbox")),
    ...unknownIn(`tokens[${index}].harnesses`, harnesses, loaded("harness")),
  ]);
  if (problems.length > 0) throw new ConfigurationInvalid(file ?? "configuration", problems);
  return new Tenants(tokens);
}

function unknownIn(path: string, names: readonly string[], loaded: readonly string[]): readonly string[] {
  return names
    .filter((name) => !loaded.includes(name))
    .map((name) => `${path}: '${name}' isn't loaded; expected one of ${loaded.join(", ")}`);
}
