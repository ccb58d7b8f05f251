import { closeSync, openSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { PathMapping } from "@ambit/backend-kit/safe-fs";
import {
  type Command,
  type Evidence,
  type Exit,
  type LimitHits,
  type NetworkBoundary,
  type Process,
  type ResourceLimits,
  SandboxFailed,
} from "@ambit/core/plugin";
import { type TrustFiles, trustVariables } from "@ambit/egress/credentials";
import { clientEnvironment } from "@ambit/egress/proxy";
import { directHosts, loopbackForwards } from "../claims.js";
import { JailInbound } from "../expose/channel.js";
import {
  descendants,
  endProcess,
  type HostProcess,
  hasEnded,
  markArgument,
  markOf,
  signalProcess,
} from "../process/host-processes.js";
import { checkCommand, inheritableDescriptors, pipesOf } from "../process/start-child.js";
import { filtered } from "./evidence.js";
import { isWritable, openSessionFolder } from "./files/workspace-rules.js";
import { bubblewrapArguments, type Jail, type WorkspaceMount } from "./launch/arguments.js";
import { channelUrl, inside } from "./launch/inside.js";
import {
  argumentsDescriptor,
  gateScript,
  jailDescriptors,
  type Launched,
  launchJail,
  launchOf,
  type WayOut,
} from "./launch/launch.js";

import type { ConfinedSession } from "./session.js";

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
  #asked = false;
  #killed = false;

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
      if (this.#killed) return { code: null, signal: "SIGKILL" };
      return this.#asked && exit.code === 128 + constants.signals.SIGTERM
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
      this.#asked = true;
      signalProcess(this.#payload, "SIGTERM");
      await Promise.race([this.exit, delay(politeMs, undefined, { ref: false })]);
    }
    this.#end();
    await this.exit;
  }

  #end(): void {
    this.#killed ||= !hasEnded(this.#init);
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
  { rules: applied = true }: { readonly rules?: boolean } = {},
): Promise<ConfinedProcess> {
  checkCommand(command);
  const held = applied ? await session.rules?.hold(command.role) : undefined;
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
  const { spec, config, jailSetup, folder, user, parts } = session;
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
    const groups = await session.groups?.entrances();
    closing.push(...(groups ?? []).map((group) => () => group.close()));
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
        groups: (groups ?? []).flatMap((_group, index) => jailDescriptors.groups[index] ?? []),
        relocatedMounts: session.requiredPaths.relocatedMounts,
        user,
      }),
      commandLines,
      workspaceMounts,
      descriptors,
      devNull: jailSetup.devNull,
      inheritable,
      expected: { ...expected, uid: user?.uid ?? ownUid() },
      refuse: parts.refuse,
      runnerNamespaces: jailSetup.namespaces,
      program,
      startMs: config.startMs,
      mark,
      groups: session.groups && {
        descriptors: (groups ?? []).map(({ fd }) => fd),
        include: session.groups.include,
      },
      conceal: (words) => withoutHost(words, { folder: folder.path, mark }),
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
