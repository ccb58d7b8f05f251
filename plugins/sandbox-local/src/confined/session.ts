/** A confined sandbox: what its jails share, opened at once or not at all. */

import { realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { SafeSessionFiles, type SessionFiles } from "@ambit/backend-kit/safe-fs";
import {
  type Command,
  type Evidence,
  type Exposure,
  type FetchHandler,
  type LimitHits,
  type Process,
  type Readability,
  type RequiredPath,
  type SandboxContents,
  SandboxFailed,
  type SandboxSpec,
} from "@ambit/core/plugin";
import { openSessionBroker, readAuthorities } from "@ambit/egress/credentials";
import { type Lookup, openSessionProxy } from "@ambit/egress/proxy";
import { z } from "zod";
import { makeSessionGroups } from "../cgroup/session-groups.js";
import type { LocalConfig } from "../config.js";
import { enterJails, SessionChannel } from "../expose/channel.js";
import {
  deadRunner,
  endLeftover,
  groupsRecord,
  makeReadableFolder,
  makeSessionFolder,
  markContinued,
  type RunnerFolder,
  requireUsable,
  type SessionFolder,
  writeReadable,
} from "../folders/data-folder.js";
import { leaseUserId, type UserIdLease } from "../identity/user-ids.js";
import { SessionSandbox } from "../session-sandbox.js";
import { channelUrl, inside } from "./arguments.js";
import {
  isOfSystem,
  isPassable,
  nodeInstallation,
  type RequiredPaths,
  readabilityOf,
  resolveRequiredPaths,
} from "./files/required-paths.js";
import { WorkspaceRules } from "./files/workspace-rules.js";
import {
  type ConfinedProcess,
  type ConfinedSession,
  type SessionCredentials,
  type SessionParts,
  spawnConfined,
} from "./jail.js";
import { type JailSetup, limitFiles, makeTrustStore } from "./jail-setup.js";

/**
 * Opens a confined sandbox. Its limits are applied; each of its jails is judged before its program's first instruction.
 *
 * @throws SandboxFailed when a limit can't be applied, or with `isTried` when no jail comes up. Nothing of the session
 * remains then.
 */
export async function openConfined(options: SessionOptions): Promise<ConfinedSandbox> {
  const session = await openSession(options);
  try {
    if (options.isTried === true) await tryJail(session);
    return new ConfinedSandbox(session);
  } catch (error) {
    await session.close();
    throw error;
  }
}

async function tryJail(session: ConfinedSession): Promise<void> {
  const nothing = { argv: ["/bin/sh", "-c", ":"], env: {} } as const;
  const trial = await spawnConfined(session, nothing, { rules: false });
  await trial.exit;
}

/** A session in which every process has a separate jail. */
export class ConfinedSandbox extends SessionSandbox {
  readonly confinement = "confined";
  readonly workspace = inside.workspace;
  readonly home = inside.agentHome;
  readonly placeholders: Readonly<Record<string, string>>;
  readonly remains?: string;
  readonly #session: ConfinedSession;
  readonly #jails = new Set<ConfinedProcess>();

  constructor(session: ConfinedSession) {
    super(session.spec.id, filesOf(session));
    this.#session = session;
    if (session.remains !== undefined) this.remains = session.remains;
    this.placeholders = session.credentials?.broker.placeholders ?? {};
  }

  get evidence(): Evidence {
    return { ...this.#session.firstJail, ...this.#session.evidence };
  }

  limitHits(): LimitHits {
    return this.#session.groups?.hits() ?? { processes: 0, memory: 0 };
  }

  /** Folders of the session's cgroups; empty when nothing is limited. */
  get groupPaths(): readonly string[] {
    return this.#session.groups?.paths ?? [];
  }

  /** Its folders on the host, for the probe. */
  get onHost(): { readonly folder: string; readonly workspace: string; readonly home: string } {
    const { path, workspace, home } = this.#session.folder;
    return { folder: path, workspace, home };
  }

  async contents(): Promise<SandboxContents> {
    const files = await this.listFiles();
    return { files, processes: [...this.#jails].reduce((sum, jail) => sum + jail.processes(), 0) };
  }

  protected async start(command: Command): Promise<Process> {
    const started = await spawnConfined(this.#session, command);
    this.#jails.add(started);
    void started.exit.then(() => this.#jails.delete(started));
    return started;
  }

  protected override async exposeInside(handler: FetchHandler): Promise<Exposure> {
    const { channel } = this.#session;
    return channel === undefined ? super.exposeInside(handler) : channel.expose(channelUrl, handler);
  }

  async connect(port: number): Promise<Duplex> {
    const { spec, parts } = this.#session;
    // The agent's jail is the oldest: its servers outlive those of tools.
    const jails = [...this.#jails].flatMap(({ inbound }) => inbound ?? []);
    return parts.enter(spec, jails, port);
  }

  protected closeSession(): Promise<void> {
    return this.#session.close();
  }
}

function filesOf({ folder, user, spec, parts }: ConfinedSession): SessionFiles {
  const home = { guest: inside.agentHome, host: folder.home };
  const workspace = { guest: inside.workspace, host: folder.workspace };
  const mappings = spec.boundary.filesystem.mode === "off" ? [home] : [workspace, home];
  return parts.files(mappings, user);
}

export const wholeParts: SessionParts = {
  lease: (ids) => leaseUserId(ids, ids.records),
  rules: (options) => new WorkspaceRules(options),
  files: (mappings, owner) => new SafeSessionFiles(mappings, owner),
  egressChecks: undefined,
  enter: enterJails,
  complete: (plan) => plan,
  refuse: (difference) => {
    throw difference;
  },
};

/**
 * Takes the spec's secrets; undefined when it has none.
 *
 * @param folder the session's folder.
 * @param trusted authorities in PEM that replace the host's and the configuration's.
 */
async function keepCredentials(
  spec: SandboxSpec,
  { trustedAuthorities }: Pick<LocalConfig, "trustedAuthorities">,
  folder: string,
  trusted: readonly string[] | undefined,
): Promise<SessionCredentials | undefined> {
  const broker = await openSessionBroker(spec, { plugin: "sandbox-local", trustedAuthorities, trusted });
  if (broker === undefined) return undefined;
  const added = await readAuthorities(trustedAuthorities, "sandbox-local");
  return { broker, shown: await makeTrustStore(folder, [broker.authority, ...added]) };
}

/** What another runner of this host needs to go on with a session's files. */
const remainsSchema = z.strictObject({
  /** The key of the runner that had them. */
  runner: z.string().regex(/^[0-9a-f]{24}$/),
  session: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  /** Their owner. Absent: the runner's own user. */
  uid: z.int().optional(),
});
type Remains = z.output<typeof remainsSchema>;

function writeRemains(remains: Remains): string {
  return JSON.stringify(remains);
}

/** @throws SandboxFailed for data of another version */
export function readRemains(text: string): Remains {
  const read = remainsSchema.safeParse(JSON.parse(text));
  if (read.success) return read.data;
  throw new SandboxFailed("Another version of sandbox-local had them", {
    cause: read.error,
    concerns: "session",
  });
}

/**
 * The folder of a session that ended with its runner, in which nothing runs any more, and the user id that a session needs to
 * go on with it. Undefined for a session that begins anew.
 *
 * @throws SandboxFailed where it isn't this host's, its runner lives, or its owner can't be this runner's
 */
async function findRemains(options: {
  readonly spec: SandboxSpec;
  readonly config: LocalConfig;
  readonly dataFolder: string;
}): Promise<{ readonly folder: string; readonly userIds: LocalConfig["userIds"] } | undefined> {
  const { spec, config, dataFolder } = options;
  if (spec.remains === undefined) return undefined;
  const { runner, session, uid } = readRemains(spec.remains);
  const { userIds } = config;
  const isOwner = (process.getuid?.() === 0) === (uid !== undefined);
  const isInRange = uid === undefined || (uid >= userIds.first && uid < userIds.first + userIds.count);
  if (session !== spec.id || !isOwner || !isInRange)
    throw new SandboxFailed("They belong to another user of this host", { concerns: "session" });
  const folder = join(await deadRunner(dataFolder, runner), session);
  await endLeftover(runner, folder, session);
  return { folder, userIds: uid === undefined ? userIds : { ...userIds, first: uid, count: 1 } };
}

export interface SessionOptions {
  readonly spec: SandboxSpec;
  readonly config: LocalConfig;
  readonly dataFolder: string;
  readonly runner: RunnerFolder;
  readonly jailSetup: JailSetup;
  readonly lookup?: Lookup | undefined;
  /** Whether a session's own user can read these paths. Default: all of their files are looked at. */
  readonly reads?: (paths: readonly RequiredPath[]) => Readability;
  /** Authorities in PEM, replacing the host's, of servers that credentials may be sent to. */
  readonly trusted?: readonly string[] | undefined;
  /**
   * Whether a jail that runs nothing comes up before the sandbox is open. Default false: the first process fails instead,
   * before its first instruction.
   */
  readonly isTried?: boolean | undefined;
  /** Further facts for the session's evidence. */
  readonly evidence?: Evidence;
  /** Called after each start of a jail, with the reason if it failed. */
  readonly onLaunch?: (failure?: unknown) => void;
  /** Default: all of them. */
  readonly parts?: SessionParts;
  /** Called when the session is closed, or couldn't be opened. */
  readonly onClose?: () => Promise<void>;
}

/** What tests and probes open a sandbox with, replacing the host's own. */
export type SessionOverrides = Pick<SessionOptions, "lookup" | "trusted" | "isTried" | "onLaunch">;

/** Opens everything that is shared, or nothing. */
export async function openSession(options: SessionOptions): Promise<ConfinedSession> {
  const { spec, runner, jailSetup, parts = wholeParts, onClose } = options;
  const config = configOf(options);
  const opened: (() => Promise<void>)[] = [];
  if (onClose !== undefined) opened.push(onClose);
  const close = async () => {
    const failures: unknown[] = [];
    for (let step = opened.pop(); step !== undefined; step = opened.pop()) {
      await step().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) {
      throw new SandboxFailed(`The sandbox ${spec.id} left something behind when it closed`, {
        cause: new AggregateError(failures),
      });
    }
  };
  try {
    const remains = await findRemains(options);
    if (spec.workspaceFolder !== undefined)
      await requireUsable(spec.workspaceFolder, options.dataFolder, spec.boundary.resources);
    const user = process.getuid?.() === 0 ? await parts.lease(remains?.userIds ?? config.userIds) : undefined;
    if (user !== undefined) {
      opened.push(() => user.release());
      await checkReachable(runner.path, options.dataFolder);
    }
    const sessionFolder = await makeSessionFolder(
      runner,
      spec.id,
      user,
      spec.boundary.resources.diskMb,
      remains?.folder,
    );
    // The user's folder stays.
    const folder = { ...sessionFolder, workspace: spec.workspaceFolder ?? sessionFolder.workspace };
    opened.push(async () => {
      await sessionFolder.remove();
      runner.trash.report(spec.log);
    });
    const isContinued = spec.fence !== undefined && config.takeoverMinutes > 0;
    if (isContinued) await markContinued(folder);
    // While the rest opens: the kernel takes its time for each group.
    const grouping = Object.values(spec.boundary.resources).some((limit) => limit !== undefined)
      ? makeSessionGroups(
          `ambit-${runner.key}-${spec.id}`,
          spec.boundary.resources,
          join(folder.path, groupsRecord),
        )
      : Promise.resolve(undefined);
    const grouped = grouping.catch(() => undefined);
    opened.push(async () => (await grouped)?.remove());
    const credentials = await keepCredentials(spec, config, folder.path, options.trusted);
    const network = spec.boundary.network.mode === "on" ? "shared" : "own";
    const channel = network === "own" ? await SessionChannel.open(folder.path, user) : undefined;
    if (channel !== undefined) {
      opened.push(() => channel.close());
      const proxy = await openSessionProxy({
        spec,
        listen: { server: channel.connections },
        own: { port: inside.port, listener: channel.listener },
        lookup: options.lookup,
        checks: parts.egressChecks,
        credentials: credentials?.broker,
      });
      opened.push(() => proxy.close());
    }
    const requiredPaths = await showRequiredPaths(options, folder, user !== undefined);
    const groups = await grouping;
    const { resources } = spec.boundary;
    return {
      spec,
      config,
      runnerKey: runner.key,
      jailSetup,
      folder,
      network,
      user,
      remains: isContinued
        ? writeRemains({ runner: runner.key, session: spec.id, uid: user?.uid })
        : undefined,
      groups,
      limitFiles: groups ? await limitFiles(groups, resources, folder.path, user !== undefined) : [],
      channel,
      credentials,
      requiredPaths,
      parts,
      rules: rulesOf({ spec, config }, parts, folder, user),
      spawned: 0,
      evidence: {
        ...(user === undefined ? {} : { uid: user.uid }),
        ...jailSetup.bubblewrap,
        ...groups?.evidence,
        ...(folder.diskBytes === undefined ? {} : { "disk.bytes": String(folder.diskBytes) }),
        ...options.evidence,
      },
      firstJail: undefined,
      onLaunch: options.onLaunch,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** In a folder of the user's, what git keeps is read-only: git runs on the host what stands there. */
function configOf({ spec, config }: SessionOptions): LocalConfig {
  if (spec.workspaceFolder === undefined) return config;
  return { ...config, protectedPaths: [".git", ...config.protectedPaths] };
}

function rulesOf(
  { spec, config }: Pick<SessionOptions, "spec" | "config">,
  parts: SessionParts,
  folder: SessionFolder,
  owner: UserIdLease | undefined,
): ConfinedSession["rules"] {
  const { filesystem } = spec.boundary;
  if (filesystem.mode === "off") return undefined;
  return parts.rules({ folder: folder.workspace, filesystem, config, owner });
}

async function showRequiredPaths(
  { spec, config, jailSetup, dataFolder, reads = readabilityOf }: SessionOptions,
  folder: SessionFolder,
  hasOwnUser: boolean,
): Promise<RequiredPaths> {
  const mounted = config.readOnlyMounts.map((path) => ({
    path,
    what: "A path of sandbox-local's `readOnlyMounts`",
  }));
  const node = await nodeInstallation();
  const wanted = [node, ...mounted, ...spec.requiredPaths];
  // What a deployer mounts may have parts that are closed, as the data folder has; what a program needs may not.
  const needed = [node, ...spec.requiredPaths].filter(
    ({ path }) => !isOfSystem(path, jailSetup.system) && path !== dataFolder,
  );
  const readability = hasOwnUser ? reads(needed) : true;
  if (readability !== true) throw new SandboxFailed(readability.reason);
  const places = join(folder.path, "relocated");
  const requiredPaths = await resolveRequiredPaths(
    wanted,
    jailSetup.system,
    await realpath(dataFolder),
    hasOwnUser ? places : undefined,
  );
  if (requiredPaths.relocatedMounts.length > 0) await makeReadableFolder(places);
  for (const { source, place } of requiredPaths.relocatedMounts) {
    if ((await stat(source)).isDirectory()) await makeReadableFolder(place);
    else await writeReadable(place, "");
  }
  return requiredPaths;
}

/** bubblewrap reaches the session's folders as the session's user, which is unprivileged. */
async function checkReachable(folder: string, dataFolder: string): Promise<void> {
  if (await isPassable(folder)) return;
  throw new SandboxFailed(
    `${dataFolder} can't be reached by a session's own user: set sandbox-local's dataFolder to a folder that other users can reach (o+x on each folder of its path)`,
  );
}
