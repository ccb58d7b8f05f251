/** One jail: composed from its session, started by bubblewrap, looked at, and then allowed to run its program. */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { FileOwner, PathMapping, SessionFiles } from "@ambit/backend-kit/safe-fs";
import {
  type Command,
  type Evidence,
  type Exit,
  type LimitHits,
  LineSplitter,
  type NetworkBoundary,
  type Process,
  type ResourceLimits,
  SandboxFailed,
  type SandboxSpec,
} from "@ambit/core/plugin";
import { type CredentialBroker, type TrustFiles, trustVariables } from "@ambit/egress/credentials";
import { clientEnvironment, type EgressChecks } from "@ambit/egress/proxy";
import type { SessionGroups } from "../cgroup/session-groups.js";
import { directHosts, type LoopbackForward, loopbackForwards } from "../claims.js";
import type { LocalConfig } from "../config.js";
import { JailInbound, type SessionChannel } from "../expose/channel.js";
import type { SessionFolder } from "../folders/data-folder.js";
import type { UserIdLease } from "../identity/user-ids.js";
import {
  beginningOf,
  checkCommand,
  descendants,
  descriptorTable,
  endProcess,
  type HostProcess,
  hasEnded,
  hostProcess,
  inheritableDescriptors,
  killMarked,
  markArgument,
  markOf,
  pipesOf,
  signalProcess,
  startChild,
} from "../process/host-processes.js";
import {
  bubblewrapArguments,
  type CommandLine,
  channelUrl,
  inside,
  type Jail,
  type RelocatedMount,
  type ShownPath,
  type WorkspaceMount,
} from "./arguments.js";
import {
  type Expected,
  filtered,
  isGuarded,
  type JailInfo,
  jailInfoSchema,
  judge,
  misplacedMounts,
  type ProcessStatus,
  statusOf,
} from "./evidence.js";
import type { RequiredPaths } from "./files/required-paths.js";
import {
  isWritable,
  openSessionFolder,
  type RulesOptions,
  type WorkspaceRules,
} from "./files/workspace-rules.js";
import type { JailSetup } from "./jail-setup.js";

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
  /** Called after each start of a jail, with the reason if it failed. */
  readonly onLaunch: ((failure?: unknown) => void) | undefined;
  /** Closes everything above, in reverse order. Safe to call twice. */
  close(): Promise<void>;
}

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

/** The credentials that stay outside a session's jails, and their placeholders. */
export interface SessionCredentials {
  readonly broker: CredentialBroker;
  /** The trust store of every jail of the session. */
  readonly shown: readonly ShownPath[];
}

/**
 * The complete environment of a jail's program: what the command names, and what confinement needs. The command's home
 * and scratch folder win; its proxy doesn't, since an empty network has only Ambit's. Pure.
 */
export function jailEnvironment(
  command: Pick<Command, "env" | "role">,
  network: "own" | "shared",
  boundary: NetworkBoundary,
  trust: TrustFiles | undefined,
): Readonly<Record<string, string>> {
  for (const name of Object.keys(command.env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      throw new SandboxFailed(
        `${JSON.stringify(name)} can't be a variable's name here: use letters, digits and _`,
      );
    }
  }
  const value = Object.values(command.env).find((text) => text.includes("\0"));
  if (value !== undefined) throw new SandboxFailed("A variable's value must not contain NUL");
  return {
    HOME: command.role === "agent" ? inside.agentHome : inside.toolHome,
    TMPDIR: inside.scratch,
    USER: inside.user,
    LOGNAME: inside.user,
    // A leak sanitizer traces its process with ptrace, which the filter refuses; every program with one would fail.
    ASAN_OPTIONS: "detect_leaks=0",
    LSAN_OPTIONS: "detect_leaks=0",
    // Of the host's store: a company's authority is trusted without credentials too.
    ...(trust === undefined ? {} : trustVariables(trust)),
    ...command.env,
    ...(network === "own"
      ? clientEnvironment({
          proxy: channelUrl,
          direct: directHosts(boundary),
          preload: inside.nodeProxy,
          given: command.env,
        })
      : {}),
  };
}

/** Details of a session that a caller must not learn. */
interface Concealed {
  /** The session's folder on the host. */
  readonly folder: string;
  readonly mark: string;
}

/** bubblewrap's own message about a failed start, without the host's folders and the runner's mark. Pure. */
export function withoutHost(words: string, { folder, mark }: Concealed): string {
  return words
    .replaceAll(markArgument(mark), "sandbox")
    .replaceAll(folder, "(the session's folder)")
    .replaceAll(dirname(folder), "(the runner's folder)")
    .replaceAll(dirname(dirname(dirname(folder))), "(the data folder)");
}

/**
 * The session limit that kept a jail from starting, if one did: a failure inside then has no other reason. Pure.
 *
 * @param before how often each limit was reached before the start.
 */
export function limitReached(
  program: string,
  limits: ResourceLimits,
  before: LimitHits,
  after: LimitHits,
  cause: unknown,
): SandboxFailed | undefined {
  const reached =
    after.processes > before.processes
      ? `limit of ${limits.processes} processes (resources.processes)`
      : after.memory > before.memory
        ? `limit of ${limits.memoryMb} MiB (resources.memoryMb)`
        : undefined;
  if (reached === undefined) return undefined;
  return new SandboxFailed(
    `${program} can't be started: the session's ${reached} is reached, by all its processes together and three or four of each jail's own: raise it, or start fewer at once`,
    { cause, concerns: "session" },
  );
}

/** Milliseconds between SIGTERM and SIGKILL. */
const politeMs = 2_000;

/** One jail: the payload, and with it everything in its pid namespace. */
export class ConfinedProcess implements Process {
  readonly stdin: Process["stdin"];
  readonly stdout: Process["stdout"];
  readonly stderr: Process["stderr"];
  readonly evidence: Evidence;
  readonly exit: Promise<Exit>;
  /** Its way in, where the boundary has one: closed when the jail has ended. */
  readonly inbound: JailInbound | undefined;
  readonly #init: HostProcess;
  readonly #payload: HostProcess;
  readonly #relays: number;
  #wasAskedToEnd = false;
  #wasKilled = false;

  /** @param relays the number of processes that are the jail's own way out. */
  constructor(
    { child, init, payload, evidence }: Launched,
    {
      relays,
      inbound,
      signal,
    }: {
      readonly relays: number;
      readonly inbound: JailInbound | undefined;
      readonly signal: AbortSignal | undefined;
    },
  ) {
    this.#init = init;
    this.#relays = relays;
    this.inbound = inbound;
    this.#payload = payload;
    this.evidence = evidence;
    const { stdin, stdout, stderr } = pipesOf(child);
    this.stdin = stdin;
    this.stdout = stdout;
    this.stderr = stderr;
    const onAbort = () => this.#end();
    signal?.addEventListener("abort", onAbort, { once: true });
    const ended =
      child.exitCode !== null || child.signalCode !== null
        ? Promise.resolve({ code: child.exitCode, signal: child.signalCode })
        : new Promise<Exit>((resolve) => child.once("exit", (code, name) => resolve({ code, signal: name })));
    this.exit = ended.then(async (exit) => {
      signal?.removeEventListener("abort", onAbort);
      // bubblewrap ends after the jail's first process; if bubblewrap itself is killed, that process follows.
      endProcess(init);
      await untilEnded(init);
      await inbound?.close();
      if (this.#wasKilled) return { code: null, signal: "SIGKILL" };
      return this.#wasAskedToEnd && exit.code === 128 + constants.signals.SIGTERM
        ? { code: null, signal: "SIGTERM" }
        : exit;
    });
    if (signal?.aborted) onAbort();
  }

  /** The number of live processes in the jail, without its own. */
  processes(): number {
    return Math.max(0, descendants(this.#init) - this.#relays);
  }

  async kill(name: "SIGTERM" | "SIGKILL" = "SIGKILL"): Promise<void> {
    if (name === "SIGTERM") {
      this.#wasAskedToEnd = true;
      signalProcess(this.#payload, "SIGTERM");
      await Promise.race([this.exit, delay(politeMs, undefined, { ref: false })]);
    }
    this.#end();
    await this.exit;
  }

  #end(): void {
    this.#wasKilled ||= !hasEnded(this.#init);
    endProcess(this.#init);
  }
}

async function untilEnded(init: HostProcess): Promise<void> {
  while (!hasEnded(init)) await delay(2);
}

/**
 * Starts a command in a new jail.
 *
 * @param rules whether the workspace's path rules apply. Not in a trial, which would create the listed paths too early.
 * No other jail of the session lives then, and this one runs nothing of it.
 */
export async function spawnConfined(
  session: ConfinedSession,
  command: Command,
  { rules: appliesRules = true }: { readonly rules?: boolean } = {},
): Promise<ConfinedProcess> {
  checkCommand(command);
  const held = appliesRules ? await session.rules?.hold(command.role) : undefined;
  try {
    const started = await spawnWith(session, command, held?.mounts ?? []);
    session.onLaunch?.();
    session.firstJail ??= started.evidence;
    // It settles when nothing of the jail lives.
    if (held !== undefined) started.exit.then(held.release, held.release);
    return started;
  } catch (error) {
    session.onLaunch?.(error);
    held?.release();
    throw error;
  }
}

async function spawnWith(
  session: ConfinedSession,
  command: Command,
  workspaceMounts: readonly WorkspaceMount[],
): Promise<ConfinedProcess> {
  const { spec, jailSetup, folder, user, parts } = session;
  const { filesystem } = spec.boundary;
  const number = ++session.spawned;
  const inbound = await openInbound(session, number);
  const closing: (() => Promise<void> | void)[] = [];
  const descriptors: number[] = [];
  const give = (descriptor: number) => jailDescriptors.seccomp + descriptors.push(descriptor) - 1;
  const giveFolder = async (mapping: PathMapping) => {
    const handle = await openSessionFolder(mapping);
    closing.push(() => handle.close());
    return give(handle.fd);
  };
  try {
    const groups = (await session.groups?.entrances()) ?? [];
    closing.push(...groups.map((group) => () => group.close()));
    const seccomp = openSync(jailSetup.seccompFile, "r");
    closing.push(() => closeSync(seccomp));
    give(seccomp);
    const agentHome =
      command.role === "agent" ? await giveFolder({ guest: inside.agentHome, host: folder.home }) : undefined;
    const workspace =
      filesystem.mode === "off"
        ? undefined
        : {
            descriptor: await giveFolder({ guest: inside.workspace, host: folder.workspace }),
            writable: isWritable(filesystem),
          };
    const jail: Jail = {
      ...sharedParts(session, command.role === "agent", inbound),
      workspace,
      workspaceMounts,
      agentHome,
      environment: jailEnvironment(
        withCredentials(command, session),
        session.network,
        spec.boundary.network,
        jailSetup.trust,
      ),
      cwd: command.cwd ?? inside.workspace,
      descriptors: { seccomp: jailDescriptors.seccomp, info: jailDescriptors.info },
    };
    const shown = workspaceMounts.filter(({ kind }) => kind === "read" || kind === "write");
    const { commandLines, launcher, inheritable, expected } = parts.complete(
      {
        commandLines: bubblewrapArguments(jail),
        launcher: [],
        inheritable: inheritableDescriptors(),
        expected: { shared: session.network === "shared" ? ["net"] : [], seccomp: filtered },
      },
      {
        shown: shown.map(({ path }) => join(folder.workspace, path)),
        give,
        defer: (close) => closing.push(close),
      },
    );
    const makers = commandLines.flatMap((_line, index) => {
      const program = index === 0 ? jailSetup.bubblewrapProgram : inside.bubblewrap;
      return [program, "--args", String(argumentsDescriptor(index, descriptors.length)), "--"];
    });
    const wayOut: WayOut | undefined =
      session.network === "own"
        ? {
            forwards: loopbackForwards(spec.boundary.network),
            isInbound: inbound !== undefined,
          }
        : undefined;
    const [program, ...args] = command.argv;
    const mark = markOf(session.runnerKey, spec.id, number);
    const hits = session.groups?.hits();
    const launched = await launchJail({
      launch: launchOf({
        jail: [
          ...launcher,
          ...makers,
          inside.shell,
          "-c",
          gateScript(wayOut),
          "sandbox",
          markArgument(mark),
          program,
          ...args,
        ],
        groups: groups.flatMap((_group, index) => jailDescriptors.groups[index] ?? []),
        relocatedMounts: session.requiredPaths.relocatedMounts,
        user,
      }),
      session,
      commandLines,
      workspaceMounts,
      descriptors,
      groupDescriptors: groups.map(({ fd }) => fd),
      inheritable,
      expected: { ...expected, uid: user?.uid ?? ownUid() },
      program,
      mark,
      signal: command.signal,
    }).catch((error: unknown) => {
      const after = session.groups?.hits();
      if (hits === undefined || after === undefined) throw error;
      throw limitReached(program, spec.boundary.resources, hits, after, error) ?? error;
    });
    const relays = wayOut === undefined ? 0 : 1;
    return new ConfinedProcess(launched, { relays, inbound, signal: command.signal });
  } catch (error) {
    await inbound?.close();
    throw error;
  } finally {
    await Promise.all(closing.map((close) => close()));
  }
}

/** The command with the variables that make its programs send placeholders and trust the proxy that replaces them. */
function withCredentials(command: Command, { credentials }: ConfinedSession): Command {
  if (credentials === undefined) return command;
  return {
    ...command,
    env: credentials.broker.environment(command.role ?? "tool", inside.trust, command.env),
  };
}

/** The jail's own way in, where the boundary has one. */
async function openInbound(session: ConfinedSession, number: number): Promise<JailInbound | undefined> {
  const { spec, folder, user, channel } = session;
  if (spec.boundary.inbound === undefined || channel === undefined) return undefined;
  return JailInbound.open(folder.path, number, user);
}

/** The parts of a jail that all jails of a session share, with its own way in. */
function sharedParts(
  { jailSetup, requiredPaths, limitFiles, network, channel, credentials, config }: ConfinedSession,
  isAgent: boolean,
  inbound: JailInbound | undefined,
) {
  const trustStore = credentials?.shown ?? jailSetup.trustStore;
  return {
    shell: jailSetup.shell,
    bubblewrap: jailSetup.bubblewrapProgram,
    system: jailSetup.system,
    etc: {
      folder: jailSetup.etc.folder,
      shown: [
        ...jailSetup.etc.shown,
        ...trustStore.filter(({ path }) => path.startsWith("/etc/")),
        ...(isAgent ? jailSetup.etc.agent : []),
        ...(network === "shared" ? jailSetup.etc.shared : []),
      ],
    },
    requiredPaths: [
      ...requiredPaths.shown,
      ...limitFiles,
      ...trustStore.filter(({ path }) => path.startsWith("/run/")),
    ],
    covered: requiredPaths.covered,
    scratchBytes: config.scratchMb * 1024 * 1024,
    channel:
      channel === undefined
        ? []
        : [
            { source: channel.path, path: inside.channel, socket: true },
            ...(inbound === undefined ? [] : [{ source: inbound.path, path: inside.inbound, socket: true }]),
            { source: jailSetup.nodeProxy, path: inside.nodeProxy, socket: false },
            {
              source: jailSetup.relay,
              path: inside.relayProgram,
              socket: false,
            },
          ],
    network,
    coveredProc: jailSetup.coveredProc,
  } satisfies Partial<Jail>;
}

function ownUid(): number {
  const uid = process.getuid?.();
  if (uid === undefined) throw new SandboxFailed("This host has no user ids");
  return uid;
}

/** A jail's own way out, by its relay: `native/relay.c`. */
interface WayOut {
  readonly forwards: readonly LoopbackForward[];
  /** Whether it also lets the runner's connections in. */
  readonly isInbound: boolean;
}

/**
 * The jail's first program, which is process 1 of its pid namespace. When the payload ends, everything left in the jail
 * ends with process 1, and bubblewrap reaps it. (bubblewrap's own process 1 would outlive bubblewrap if the runner is a
 * container's first process and doesn't reap orphans.)
 *
 * Its child reports its process number in the jail (so that the runner can inspect it while the relay starts), then
 * that everything is up, and becomes the payload only when the runner says so. A runner that died meanwhile never does.
 * The runner then closes its end: the descriptor that the first process keeps leads nowhere.
 */
export function gateScript(wayOut: WayOut | undefined): string {
  return [
    // The runner's mark, visible on the host only.
    "shift",
    'command -v -- "$1" >/dev/null || { echo missing >&3; exit 127; }',
    // A shell reports a child that ended by a signal; standard error belongs to the payload.
    "exec 4>&2 2>/dev/null",
    "(",
    "exec 2>&4 4>&-",
    "read -r _ambit _ambit_rest </proc/self/stat",
    'echo "$_ambit" >&3',
    ...(wayOut === undefined ? [] : [startRelay(wayOut)]),
    "echo up >&3",
    "read -r _ambit <&3 || exit 125",
    "exec 3>&-",
    'exec "$@"',
    ")",
    "exit $?",
  ].join("\n");
}

/**
 * Starts the relay in a shell of its own, so that the payload gets no child that it didn't start. The relay is a static program
 * that reads no variable. It says `up` on descriptor 4, and closes that, once all its ports listen.
 */
function startRelay({ forwards, isInbound }: WayOut): string {
  const targets = [...forwards.map(authority), ...(isInbound ? ["inbound"] : [])];
  const command = [inside.relayProgram, ...targets].join(" ");
  return `[ "$(exec </dev/null 3>&-; ${command} 4>&1 >/dev/null 2>&1 &)" = up ] || { echo relay >&3; exit 126; }`;
}

function authority({ address, port }: LoopbackForward): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** What has to happen between the runner and bubblewrap. */
interface Stages {
  /** bubblewrap's whole command line. */
  readonly jail: readonly string[];
  /** Descriptors of the session's cgroups, which it adds itself to before anything else starts; one digit each. */
  readonly groups: readonly number[];
  /** Mounts that only this process and its children see. Needs root. */
  readonly relocatedMounts: readonly RelocatedMount[];
  /**
   * The session's user, switched to before bubblewrap starts: as uid 0, bubblewrap isn't a sandbox. Undefined if the
   * runner is that user already.
   */
  readonly user: { readonly uid: number; readonly gid: number } | undefined;
}

/** A program to start, and its user. */
interface Launch {
  readonly argv: readonly [program: string, ...args: string[]];
  readonly user: Stages["user"];
}

/** A shell that fails to write says why. The descriptors are closed: nothing of the jail has them. */
const joining = (groups: readonly number[]) => [
  ...groups.map((group) => `echo 0 >&${group} || exit 125`),
  `exec ${groups.map((group) => `${group}>&-`).join(" ")}`,
];

/** The command that the runner starts. Pure. */
export function launchOf({ jail, groups, relocatedMounts, user }: Stages): Launch {
  if (relocatedMounts.length > 0 && user !== undefined) {
    const { uid, gid } = user;
    const drop = [
      "setpriv",
      "--reuid",
      String(uid),
      "--regid",
      String(gid),
      "--clear-groups",
      "--no-new-privs",
      "--",
    ];
    const script = [
      ...(groups.length > 0 ? joining(groups) : []),
      'while [ "$1" != "--" ]; do mount --bind -- "$1" "$2" || exit 124; shift 2; done; shift',
      'exec "$@"',
    ].join("\n");
    const mounts = relocatedMounts.flatMap(({ source, place }) => [source, place]);
    const shell = ["/bin/sh", "-c", script, "sh", ...mounts, "--"];
    return {
      argv: ["unshare", "--mount", "--propagation", "private", "--", ...shell, ...drop, ...jail],
      user: undefined,
    };
  }
  const joined = () => ["/bin/sh", "-c", [...joining(groups), 'exec "$@"'].join("\n"), "sh", ...jail];
  const [program, ...args] = groups.length > 0 ? joined() : jail;
  if (program === undefined) throw new RangeError("A jail needs a program to start");
  return { argv: [program, ...args], user };
}

/** Numbers of the descriptors that every launch has; further ones follow. A shell reads the groups', of one digit. */
const jailDescriptors = {
  /** Connects the runner with the jail's first program; closed before the payload starts. */
  gate: 3,
  groups: [4, 5, 6],
  info: 7,
  arguments: 8,
  seccomp: 9,
} as const;

/**
 * The number of the descriptor from which a bubblewrap reads its arguments.
 *
 * @param index 0 for the first one.
 * @param furtherDescriptors how many descriptors `LaunchOptions.descriptors` has.
 */
function argumentsDescriptor(index: number, furtherDescriptors: number): number {
  return index === 0 ? jailDescriptors.arguments : jailDescriptors.seccomp + furtherDescriptors + index - 1;
}

interface LaunchOptions {
  readonly session: ConfinedSession;
  readonly launch: Launch;
  /** For `--args` of each bubblewrap. */
  readonly commandLines: readonly CommandLine[];
  /** What the last one mounts in the workspace. */
  readonly workspaceMounts: readonly WorkspaceMount[];
  /** Open descriptors for numbers from `jailDescriptors.seccomp` on. */
  readonly descriptors: readonly number[];
  /** Open descriptors for the numbers of `jailDescriptors.groups`, through which the first stage adds itself. */
  readonly groupDescriptors: readonly number[];
  /** Descriptors that the launcher would inherit from the runner's parent. They are closed. */
  readonly inheritable: readonly number[];
  readonly expected: Expected;
  /** For messages: the payload's program. */
  readonly program: string;
  /** On the command line of bubblewrap, of the programs before it, and of the jail's first process. */
  readonly mark: string;
  readonly signal: AbortSignal | undefined;
}

interface Launched {
  readonly child: ChildProcess;
  readonly init: HostProcess;
  readonly payload: HostProcess;
  readonly evidence: Evidence;
}

/**
 * Starts a jail, inspects it, and lets the payload begin.
 *
 * @throws SandboxFailed when it doesn't come up, or differs from the plan; nothing of it remains then.
 */
async function launchJail(options: LaunchOptions): Promise<Launched> {
  const { session, launch, signal } = options;
  const { startMs } = session.config;
  signal?.throwIfAborted();
  const planned = [
    ...(["pipe", "pipe", "pipe", "pipe"] as const),
    ...jailDescriptors.groups.map((_number, index) => options.groupDescriptors[index] ?? ("ignore" as const)),
    ...(["pipe", "pipe"] as const),
    ...options.descriptors,
    ...options.commandLines.slice(1).map(() => "pipe" as const),
  ];
  const [program, ...args] = launch.argv;
  const child = await startChild(program, args, {
    // No variable of the runner's: bubblewrap's environment is that of a process of the jail.
    env: {
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    },
    cwd: "/",
    // In a new session: signals from a terminal or supervisor to the runner's group must not reach the jails. The
    // runner ends them itself after their runs had time to finish.
    detached: true,
    stdio: [...descriptorTable(planned, options.inheritable, session.jailSetup.devNull)],
    ...(launch.user ?? {}),
  });
  const stop = () => child.kill("SIGKILL");
  // A bubblewrap that is killed this early may leave processes that hold its pipes open, which then don't end.
  let giveUp = () => {};
  const givenUp = new Promise<never>((_resolve, reject) => {
    giveUp = () => {
      stop();
      reject(new SandboxFailed(`The jail didn't start within ${startMs} ms`));
    };
  });
  const timer = setTimeout(giveUp, startMs);
  const release = keepUnread([pipeAt(child, jailDescriptors.gate), child.stderr]);
  signal?.addEventListener("abort", giveUp, { once: true });
  if (signal?.aborted) giveUp();
  try {
    return await Promise.race([inspectJail(child, options), givenUp]);
  } catch (error) {
    stop();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    // bubblewrap's child asks to end with bubblewrap only some time after its start; killed before that, bubblewrap
    // leaves it behind.
    for (const pipe of child.stdio) pipe?.destroy();
    await killMarked(options.mark);
    throw signal?.aborted ? (signal.reason ?? error) : error;
  } finally {
    clearTimeout(timer);
    release();
    signal?.removeEventListener("abort", giveUp);
  }
}

/** When a child ends, Node discards what its pipes hold, except of a pipe that has a listener: the reason of a failure. */
function keepUnread(pipes: readonly (Readable | null)[]): () => void {
  const onReadable = () => undefined;
  for (const pipe of pipes) pipe?.on("readable", onReadable);
  return () => {
    for (const pipe of pipes) pipe?.off("readable", onReadable);
  };
}

async function inspectJail(child: ChildProcess, options: LaunchOptions): Promise<Launched> {
  const gate = pipeAt(child, jailDescriptors.gate);
  const info = pipeAt(child, jailDescriptors.info);
  const argumentPipes = options.commandLines.map((line, index) => {
    return { line, pipe: pipeAt(child, argumentsDescriptor(index, options.descriptors.length)) };
  });
  // A failed launch closes these; its own message is the reason, not a broken pipe.
  for (const pipe of [gate, info, ...argumentPipes.map(({ pipe }) => pipe)])
    pipe.on("error", () => undefined);
  for (const { line, pipe } of argumentPipes) pipe.end(line.map((argument) => `${argument}\0`).join(""));

  const words = gateWords(gate);
  const next = async () => (await words.next()).value;
  const json = await beginningOf(info);
  const number = await next();
  if (number === undefined || !/^\d+$/.test(number)) throw await explain(child, options, number);
  const jail: JailInfo = jailInfoSchema.parse(JSON.parse(json));
  const init = hostProcess(jail["child-pid"]);
  try {
    const { payload, evidence } = await inspectProcesses(jail, Number(number), options);
    const word = await next();
    if (word !== "up") throw await explain(child, options, word);
    // Closed as well: what the jail's processes write into it from now on is discarded.
    gate.end("\n", () => gate.destroy());
    return { child, init, payload, evidence };
  } catch (error) {
    endProcess(init);
    throw error;
  }
}

/** Checks the program that becomes the payload, and the jail's first program, which starts it. */
async function inspectProcesses(
  jail: JailInfo,
  number: number,
  { session, expected, commandLines, workspaceMounts }: LaunchOptions,
): Promise<{ payload: HostProcess; evidence: Evidence }> {
  const { jailSetup, groups, parts } = session;
  const runnerNamespaces = jailSetup.namespaces;
  const init = jail["child-pid"];
  // The second bubblewrap is the init of its jail. No process in there can reach it: its user namespace is another one.
  const first = commandLines.length > 1 ? childOf(init, () => true) : init;
  const payload = childOf(first, (status) => status.numbers.at(-1) === number);
  const refuseJail = (difference: SandboxFailed) => parts.refuse(difference, "jail");
  judge(jail, await filteredStatus(first, expected), runnerNamespaces, expected, refuseJail);
  if (!isGuarded(first, expected)) {
    parts.refuse(
      new SandboxFailed(
        "The jail's first process can be changed by its payload, so nothing was started in it: set fs.suid_dumpable to 0 or 2",
      ),
      "first process",
    );
  }
  // What the first stage started is in the same groups, this program among it.
  if (groups !== undefined && !groups.include(readFileSync(`/proc/${payload}/cgroup`, "latin1"))) {
    refuseJail(
      new SandboxFailed(
        "The jail isn't as planned, so nothing was started in it: its limits don't hold for it",
      ),
    );
  }
  const misplaced =
    workspaceMounts.length === 0
      ? []
      : misplacedMounts(readFileSync(`/proc/${payload}/mountinfo`, "latin1"), workspaceMounts);
  if (misplaced.length > 0) {
    refuseJail(
      new SandboxFailed(
        `The jail isn't as planned, so nothing was started in it: a path of its workspace was exchanged (${misplaced.join(", ")})`,
        { concerns: "session" },
      ),
    );
  }
  return {
    payload: hostProcess(payload),
    evidence: judge(jail, statusOf(payload), runnerNamespaces, expected, refuseJail),
  };
}

/** The jail's first program already runs while its filter is loaded, so this waits for it. */
async function filteredStatus(first: number, expected: Expected): Promise<ProcessStatus> {
  for (let tries = 0; ; tries++) {
    const status = statusOf(first);
    if (expected.seccomp === undefined || status.seccomp === expected.seccomp || tries === 500) return status;
    await delay(1);
  }
}

/** The number on the host of the first child that is the one looked for. */
function childOf(parent: number, isIt: (status: ProcessStatus) => boolean): number {
  const children = readFileSync(`/proc/${parent}/task/${parent}/children`, "latin1")
    .trim()
    .split(" ")
    .map(Number);
  for (const child of children) {
    const status = statusOf(child);
    if (status.parent === parent && isIt(status)) return child;
  }
  throw new SandboxFailed("The jail's first program can't be found among its processes");
}

async function explain(
  child: ChildProcess,
  options: LaunchOptions,
  word: string | undefined,
): Promise<SandboxFailed> {
  if (word === "missing") {
    return new SandboxFailed(
      `${options.program} can't be started: it isn't there, inside the sandbox (ENOENT)`,
      { concerns: "session" },
    );
  }
  if (word === "relay") {
    return new SandboxFailed(
      "The jail's relay doesn't listen: raise the session's limits of processes and memory",
    );
  }
  return inItsOwnWords(child, options);
}

/** Only bubblewrap and the stages before it have written to standard error so far. */
async function inItsOwnWords(
  child: ChildProcess,
  { session: { config, folder }, mark }: LaunchOptions,
): Promise<SandboxFailed> {
  const words = (await beginningOf(child.stderr)).trim();
  if (words !== "") {
    return new SandboxFailed(
      `The jail can't be opened: ${withoutHost(words, { folder: folder.path, mark })}`,
      {
        cause: words,
        // The command's own folder, which the session may have closed or removed.
        concerns: words.includes("Can't chdir") ? "session" : "host",
      },
    );
  }
  return new SandboxFailed(`The jail didn't start (${config.startMs} ms at most), and gave no reason`);
}

function pipeAt(child: ChildProcess, index: number): Duplex {
  const pipe = child.stdio[index];
  if (pipe === null || pipe === undefined || !("write" in pipe) || !("read" in pipe)) {
    throw new SandboxFailed(`A jail was started without its pipe ${index}`);
  }
  return pipe as Duplex;
}

/** Bytes that a jail may send through its gate in all: a process number and one word. */
const maxSentBytes = 64;

/**
 * Reads the lines that a jail sends through its gate. Variables of the payload can change what the jail's first program
 * does (`LD_PRELOAD`), so the amount is bounded.
 *
 * @throws SandboxFailed when it sends more than the lines of a gate.
 */
export async function* gateWords(gate: Readable): AsyncGenerator<string, undefined> {
  let sent = 0;
  const lines = new LineSplitter();
  for await (const chunk of gate as AsyncIterable<Buffer>) {
    sent += chunk.length;
    if (sent > maxSentBytes) {
      throw new SandboxFailed("The jail's first program sent an unexpected message: nothing was run in it");
    }
    yield* lines.push(chunk);
  }
}
