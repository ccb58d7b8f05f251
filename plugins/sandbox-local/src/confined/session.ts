import { realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import {
  type FileOwner,
  type PathMapping,
  SafeSessionFiles,
  type SessionFiles,
} from "@ambit/backend-kit/safe-fs";
import {
  type Evidence,
  type Readability,
  type RequiredPath,
  SandboxFailed,
  type SandboxSpec,
} from "@ambit/core/plugin";
import { type CredentialBroker, openSessionBroker, readAuthorities } from "@ambit/egress/credentials";
import { type EgressChecks, type Lookup, openSessionProxy } from "@ambit/egress/proxy";
import { z } from "zod";
import { makeSessionGroups, type SessionGroups } from "../cgroup/session-groups.js";
import type { LocalConfig } from "../config.js";
import { enterJails, type JailInbound, SessionChannel } from "../expose/channel.js";
import { makeReadableFolder, writeReadable } from "../folders/data-folder.js";
import {
  deadRunner,
  groupsRecord,
  makeSessionFolder,
  markContinued,
  type RunnerFolder,
  requireUsable,
  type SessionFolder,
} from "../folders/runner-folder.js";
import { leaseUserId, type UserIdLease } from "../identity/user-ids.js";
import { endLeftover } from "../reaper/reap.js";
import type { Expected } from "./evidence.js";
import {
  isOfSystem,
  isPassable,
  nodeInstallation,
  type RequiredPaths,
  readabilityOf,
  resolveRequiredPaths,
} from "./files/required-paths.js";
import { limitFiles, makeTrustStore } from "./files/system.js";
import { type RulesOptions, WorkspaceRules } from "./files/workspace-rules.js";
import type { JailSetup } from "./jail-setup.js";
import type { CommandLine, ShownPath } from "./launch/arguments.js";
import { inside } from "./launch/inside.js";

/** How a jail is launched, as it follows from its session. */
interface JailLaunchPlan {
  /** Of each bubblewrap. */
  readonly commandLines: readonly CommandLine[];
  /** The program that starts the first one, with its arguments; empty for none. */
  readonly launcher: readonly string[];
  /** Descriptors that the runner inherited, which are closed. */
  readonly inheritable: readonly number[];
  readonly expected: Omit<Expected, "uid">;
}

/** What a launch can be given besides its plan. */
interface LaunchResources {
  /** On the host: what is mounted onto itself in the workspace. */
  readonly shown: readonly string[];
  /** Gives the launch an open descriptor. @returns its number there. */
  give(descriptor: number): number;
  /** Called when the launch has ended. */
  defer(close: () => void): void;
}

/**
 * What a session and its jails are composed of. The sandbox has one composition, `wholeParts`, and nothing configures another.
 * The controls of the conformance kit compose jails that lack one part.
 */
export interface SessionParts {
  /** Reserves the session's own host user. */
  lease(ids: LocalConfig["userIds"]): Promise<UserIdLease>;
  /** Determines what jails mount in the workspace. */
  rules(options: RulesOptions): Pick<WorkspaceRules, "hold">;
  /** Reads and writes the session's files for the runner. */
  files(mappings: readonly PathMapping[], owner: FileOwner | undefined): SessionFiles;
  /** Undefined: the proxy's own. */
  readonly egressChecks: EgressChecks | undefined;
  /** Connects the runner to a port inside. */
  enter(spec: SandboxSpec, jails: readonly JailInbound[], port: number): Promise<Duplex>;
  complete(plan: JailLaunchPlan, resources: LaunchResources): JailLaunchPlan;
  /** @throws SandboxFailed when a jail that isn't as planned must not start anything. */
  refuse(difference: SandboxFailed, of: "jail" | "first process"): void;
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

/** The credentials that stay outside a session's jails, and their placeholders. */
interface SessionCredentials {
  readonly broker: CredentialBroker;
  /** The trust store of every jail of the session. */
  readonly shown: readonly ShownPath[];
}

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

/** What one session's jails share. */
export interface ConfinedSession {
  readonly spec: SandboxSpec;
  readonly config: LocalConfig;
  readonly runnerKey: string;
  readonly jailSetup: JailSetup;
  readonly folder: SessionFolder;
  readonly network: "own" | "shared";
  /** The host user that its jails run as; undefined if that is the runner's. */
  readonly user: UserIdLease | undefined;
  /** Names its files for another runner, once this one is killed. Undefined: they end with this runner. */
  readonly remains: string | undefined;
  readonly groups: SessionGroups | undefined;
  /** Where its programs find the limits of these groups. */
  readonly limitFiles: readonly ShownPath[];
  /** Undefined when the network is the host's. */
  readonly channel: SessionChannel | undefined;
  /** Undefined where the session has none. */
  readonly credentials: SessionCredentials | undefined;
  readonly requiredPaths: RequiredPaths;
  readonly parts: SessionParts;
  /** What its jails mount in the workspace. Undefined without a workspace. */
  readonly rules: Pick<WorkspaceRules, "hold"> | undefined;
  /** The number of jails started. */
  spawned: number;
  /** What was observed of the session when it opened. */
  readonly evidence: Evidence;
  /** What the first jail that came up showed before its program's first instruction. */
  firstJail: Evidence | undefined;
  readonly onLaunch: SessionOptions["onLaunch"];
  /** Closes everything above, in reverse order. Safe to call twice. */
  close(): Promise<void>;
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
